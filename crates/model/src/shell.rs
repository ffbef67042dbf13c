//! Refuses texts that a shell would read differently: paths with `~` or `$NAME`, and commands with carriage
//! returns.
//!
//! Every path and every command that a user writes is checked here: in documents
//! ([`crate::draft::RunDraft::check_texts`]), in options, in parameters and in environment variables.

/// Refuses a path that a shell would expand, since here it would be the name of a file.
///
/// These are: `~` at the start; `${`, `$(` and pairs of backticks anywhere; `$NAME` unless a letter, a digit
/// or `$` precedes it, as in `Foo$Bar.class`; `%NAME%` at the start. After a `.` component, as in `./~x` and
/// `/data/./$x`, a name is taken as it is.
///
/// # Errors
/// What was expected instead, for a message that begins with `found …, expected`.
pub fn check_path(path: &str) -> Result<(), String> {
    match first_expanded(path) {
        None => Ok(()),
        Some((_, syntax)) => Err(format!(
            "the full path: Slackline does not expand {syntax} as a shell does; write {} for a file of that name",
            as_it_is(path)
        )),
    }
}

/// The same file, by a path that [`check_path`] accepts.
pub fn as_it_is(path: &str) -> String {
    let mut path = path.to_owned();
    while let Some((at, _)) = first_expanded(&path) {
        path.insert_str(at, "./");
    }
    path
}

/// The start of the first component that a shell would expand, and the expanded part.
fn first_expanded(path: &str) -> Option<(usize, &str)> {
    let (mut at, mut is_literal) = (0, false);
    for name in path.split('/') {
        let expanded = expanded(name, at == 0, path[at..].matches('`').count() > 1);
        if let Some(syntax) = expanded.filter(|_| !is_literal) {
            return Some((at, syntax));
        }
        is_literal = name == ".";
        at += name.len() + 1;
    }
    None
}

/// The part of a path component that a shell would expand.
fn expanded(name: &str, is_first: bool, has_backticks: bool) -> Option<&str> {
    if is_first && name.starts_with('~') {
        return Some(name);
    }
    if is_first && let Some((variable, _)) = name.strip_prefix('%').and_then(|rest| rest.split_once('%')) {
        // Conversions of times, such as %Y%m, are shorter.
        let is_variable = variable.len() > 2 && identifier(variable) == variable.len();
        return is_variable.then(|| &name[..variable.len() + 2]);
    }
    let mut before = ' ';
    for (k, c) in name.char_indices() {
        let rest = &name[k + c.len_utf8()..];
        let variable = identifier(rest);
        match c {
            '`' if has_backticks => return Some(&name[k..]),
            '$' if rest.starts_with(['{', '(']) => return Some(&name[k..]),
            '$' if variable > 0 && !before.is_alphanumeric() && before != '$' => {
                return Some(&name[k..=k + variable]);
            }
            _ => before = c,
        }
    }
    None
}

/// How many bytes at the beginning of a text are the name of a variable.
fn identifier(text: &str) -> usize {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let end = text.bytes().position(|byte| !(is_letter(byte) || byte.is_ascii_digit())).unwrap_or(text.len());
    if text.bytes().next().is_some_and(is_letter) { end } else { 0 }
}

/// Refuses a command with a line that ends with a carriage return, as in files from Windows: the shell would
/// take it for a part of the last word. Inside a line it stays.
///
/// # Errors
/// Found and expected.
pub fn check_command(command: &str) -> Result<(), String> {
    let mut lines = command.split('\n');
    match lines.position(|line| line.ends_with('\r')) {
        None => Ok(()),
        Some(line) => Err(format!(
            "found a carriage return at the end of line {} of the command, expected a line feed alone: save the file with \
             LF line ends, for example with dos2unix",
            line + 1
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_a_shell_would_expand_is_refused_with_the_part_and_the_way_out() {
        for (path, part, literal) in [
            ("~", "~", "./~"),
            ("~/results", "~", "./~/results"),
            ("~anna/x", "~anna", "./~anna/x"),
            ("~x", "~x", "./~x"),
            ("~+/x", "~+", "./~+/x"),
            ("$HOME/x", "$HOME", "./$HOME/x"),
            ("${HOME}/x", "${HOME}", "./${HOME}/x"),
            ("${HOME:-/tmp}/x", "${HOME:-", "./${HOME:-/tmp}/x"),
            ("$DATE.gz", "$DATE", "./$DATE.gz"),
            ("out/$DATE/x", "$DATE", "out/./$DATE/x"),
            ("out/run-$DATE", "$DATE", "out/./run-$DATE"),
            ("/data/a${X}b", "${X}b", "/data/./a${X}b"),
            ("out/$(date +%Y/%m)", "$(date +%Y", "out/./$(date +%Y/%m)"),
            ("out/`date +%Y/%m`", "`date +%Y", "out/./`date +%Y/%m`"),
            ("file:///data/$X", "$X", "file:///data/./$X"),
            ("%USERPROFILE%/x", "%USERPROFILE%", "./%USERPROFILE%/x"),
        ] {
            let expected = check_path(path).unwrap_err();
            assert!(
                expected.contains(&format!("does not expand {part} as a shell does")),
                "{path}: {expected}"
            );
            assert!(
                expected.ends_with(&format!("; write {literal} for a file of that name")),
                "{path}: {expected}"
            );
            assert_eq!(check_path(literal), Ok(()), "{literal}");
        }
    }

    #[test]
    fn a_path_that_may_be_meant_stays() {
        for path in [
            "",
            ".",
            "a/~b",
            "backup~",
            "a~1",
            "./~x",
            "./$x",
            "../~x",
            "in/*.gz",
            "build/Foo$Bar.class",
            "Foo$$Lambda.class",
            "Foo$1.class",
            "$1",
            "cost-$",
            "a$",
            "a$/b",
            "%Y%m%d.csv",
            "in/%H-%M.csv",
            "100%/50%",
            "{a,b}",
            "a`b",
            "@job",
            "-",
            "/data/./$x/./~y",
            "hdfs://nn/~x",
        ] {
            assert_eq!(check_path(path), Ok(()), "{path}");
        }
    }

    #[test]
    fn a_command_has_no_carriage_return_at_the_end_of_a_line() {
        for (command, line) in
            [("a\r\nb", 1), ("a\r", 1), ("a\nb\r", 2), ("a\nb\r\n", 2), ("\r\n", 1), ("a\r\r\n", 1)]
        {
            let problem = check_command(command).unwrap_err();
            assert!(problem.contains(&format!("at the end of line {line} of")), "{command:?}: {problem}");
        }
        for command in ["", "a", "a\nb\n", "printf 'a\rb'", "tr '\r' '\n'\ncat", "tr -d '\\r'"] {
            assert_eq!(check_command(command), Ok(()), "{command:?}");
        }
    }
}
