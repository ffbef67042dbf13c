//! Makes the relative paths of a flow file absolute, for a run whose process has another working directory
//! than the user.

use std::path::Path;

use slackline_model::draft::{RunDraft, RunWork};
use slackline_model::shell;

/// Makes the inputs, outputs, files and working directory of a job relative to `directory`.
pub(super) fn start_from(run: &mut RunDraft, directory: &Path) {
    let plain = shell::as_it_is(&directory.display().to_string());
    let directory = Path::new(&plain);
    for input in run.inputs.iter_mut().filter(|input| !input.starts_with('@') && !input.starts_with('/')) {
        // If the input is a pattern, the directory must not be read as one.
        let is_pattern = input.contains(['*', '?', '[']);
        *input = format!("{}/{input}", if is_pattern { escaped(&plain) } else { plain.clone() });
    }
    for path in run.setting.files.iter_mut().chain(&mut run.output) {
        *path = directory.join(&*path).display().to_string();
    }
    match &mut run.work {
        RunWork::Commands { .. } | RunWork::Command { .. } => {
            let cwd = run.setting.cwd.as_deref().unwrap_or_default();
            run.setting.cwd = Some(directory.join(cwd).display().to_string());
        }
        RunWork::Jar { jar, .. } if !jar.contains("://") => {
            *jar = directory.join(&*jar).display().to_string();
        }
        // Built-in programs depend only on the paths they are given, and not on the working directory.
        _ => {}
    }
}

/// Escapes the pattern characters of a text.
fn escaped(text: &str) -> String {
    let escape = |c: char| if "?*[]".contains(c) { format!("[{c}]") } else { c.to_string() };
    text.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_relative_paths_start_from_the_directory() {
        let work = RunWork::Commands { mapper: "./x".into(), reducer: None, combiner: None };
        let mut run = RunDraft::new(work.clone(), "out/a");
        run.inputs = ["in/*.gz", "in/x", "/data/x", "@job", "@flow/job"].map(str::to_owned).to_vec();
        run.setting.files = vec!["tool.py".into(), "/bin/tool".into()];
        start_from(&mut run, Path::new("/home/a [1]"));
        assert_eq!(
            run.inputs,
            ["/home/a [[]1[]]/in/*.gz", "/home/a [1]/in/x", "/data/x", "@job", "@flow/job"]
        );
        assert_eq!(run.output.as_deref(), Some("/home/a [1]/out/a"));
        assert_eq!(run.setting.files, ["/home/a [1]/tool.py", "/bin/tool"]);
        assert_eq!(run.setting.cwd.as_deref(), Some("/home/a [1]/"));
        run.setting.cwd = Some("sub".into());
        start_from(&mut run, Path::new("/other"));
        assert_eq!((run.setting.cwd.as_deref(), &run.work), (Some("/other/sub"), &work));
        assert_eq!(run.output.as_deref(), Some("/home/a [1]/out/a"));
    }

    #[test]
    fn a_directory_name_that_a_shell_would_expand_is_kept() {
        let mut run = RunDraft::new(RunWork::Command { command: "true".into() }, "out");
        run.inputs = vec!["in/*".into()];
        start_from(&mut run, Path::new("/home/$x"));
        assert_eq!(
            (run.output.as_deref().unwrap(), run.inputs[0].as_str()),
            ("/home/./$x/out", "/home/./$x/in/*")
        );
        assert_eq!(run.check_texts(), Ok(()));
    }

    /// A document with a `cwd` for such a job would be refused when the run is resumed.
    #[test]
    fn only_commands_run_somewhere() {
        let program = RunWork::Program { name: "sort".into(), args: Vec::new() };
        let mut run = RunDraft::new(program, "out");
        start_from(&mut run, Path::new("/home"));
        assert_eq!((run.setting.cwd, run.output.as_deref()), (None, Some("/home/out")));
        let jar = RunWork::Jar { jar: "a.jar".into(), main: "A".into(), arguments: Vec::new() };
        let mut run = RunDraft::new(jar, "out");
        start_from(&mut run, Path::new("/home"));
        assert_eq!(run.setting.cwd, None);
        assert!(matches!(run.work, RunWork::Jar { jar, .. } if jar == "/home/a.jar"));
    }
}
