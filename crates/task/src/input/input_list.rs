//! The inputs of a plain command: a file that lists them, and a variable that holds a short list.

use std::fs;
use std::path::Path;

use crate::base::error::{TaskError, at};
use crate::input::reader::display;

/// The variable that holds the list.
const LIST: &str = "SLACKLINE_INPUTS";
/// The variable that names the file of the list.
const FILE: &str = "SLACKLINE_INPUTS_FILE";
/// The longest list that the variable holds, bytes: Linux takes variables of up to 128 KiB.
const LIST_MAX: usize = 100 << 10;
/// The value of the variable if the list is too long: a path that cannot exist, so that a command that reads
/// it fails.
const TOO_LONG: &str = "/dev/null/the-list-is-too-long-read-SLACKLINE_INPUTS_FILE";
/// The name of the file in the directory of the attempt.
const NAME: &str = "inputs.list";

/// The paths of all inputs, one per line.
pub struct InputList(String);

impl InputList {
    /// The list of some files, for a command. Paths are absolute if the command has a separate working
    /// directory.
    ///
    /// # Errors
    /// A name with a newline; a list that is too long for the variable, if the command does not name the
    /// file.
    pub fn new<'a>(
        command: &str,
        files: impl Iterator<Item = &'a Path>,
        is_absolute: bool,
    ) -> Result<Self, TaskError> {
        let paths: Vec<String> = files.map(|path| shown(path, is_absolute)).collect();
        if let Some(path) = paths.iter().find(|path| path.contains('\n')) {
            let problem = format!("found the input {path:?}, expected a name without newlines");
            return Err(TaskError::Job(problem));
        }
        let list = Self(paths.join("\n"));
        if list.0.len() > LIST_MAX && !command.contains(FILE) {
            let (files, bytes) = (paths.len(), list.0.len());
            return Err(TaskError::Job(format!(
                "found {files} inputs, whose list of {bytes} bytes is too long for ${LIST} (at most {LIST_MAX}); let the command read the list from the file \"${FILE}\""
            )));
        }
        Ok(list)
    }

    /// The value of the variable.
    pub fn variable(&self) -> &str {
        if self.0.len() > LIST_MAX { TOO_LONG } else { &self.0 }
    }

    /// Writes the file into the directory of an attempt, and returns the variables of the command.
    pub(crate) fn variables(&self, directory: &Path) -> Result<Vec<(&'static str, String)>, TaskError> {
        let file = directory.join(NAME);
        let end = if self.0.is_empty() { "" } else { "\n" };
        let written = std::path::absolute(&file).and_then(|path| {
            fs::write(&path, format!("{}{end}", self.0))?;
            Ok(path)
        });
        let path = written.map_err(at("cannot write", &file))?;
        Ok(vec![(LIST, self.variable().to_owned()), (FILE, display(&path))])
    }
}

/// The path by which a command finds an input.
pub(crate) fn shown(path: &Path, is_absolute: bool) -> String {
    let absolute = is_absolute.then(|| std::path::absolute(path).ok()).flatten();
    display(absolute.as_deref().unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_is_for_commands_that_read_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let names: Vec<String> = (0..LIST_MAX / 10).map(|k| format!("in/{k:07}")).collect();
        let paths = || names.iter().map(Path::new);
        let Err(error) = InputList::new("cat $SLACKLINE_INPUTS", paths(), false) else { panic!("taken") };
        assert!(error.is_final());
        assert_eq!(
            error.to_string(),
            "found 10240 inputs, whose list of 112639 bytes is too long for $SLACKLINE_INPUTS (at most 102400); \
             let the command read the list from the file \"$SLACKLINE_INPUTS_FILE\""
        );
        let list = InputList::new("wc -l < $SLACKLINE_INPUTS_FILE", paths(), false).unwrap();
        let variables = list.variables(dir.path()).unwrap();
        assert_eq!(variables[0], (LIST, TOO_LONG.to_owned()));
        assert!(!Path::new(TOO_LONG).exists());
        assert_eq!(fs::read_to_string(&variables[1].1).unwrap().lines().collect::<Vec<_>>(), names);
    }

    #[test]
    fn a_short_list_is_in_the_variable_and_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let written = |names: &[&str]| {
            let list = InputList::new("cat", names.iter().map(Path::new), false).unwrap();
            let variables = list.variables(dir.path()).unwrap();
            assert!(Path::new(&variables[1].1).is_absolute());
            (variables[0].1.clone(), fs::read_to_string(&variables[1].1).unwrap())
        };
        assert_eq!(written(&["a", "b c"]), ("a\nb c".to_owned(), "a\nb c\n".to_owned()));
        assert_eq!(written(&[]), (String::new(), String::new()));
        let Err(error) = InputList::new("cat", ["a\nb"].iter().map(Path::new), false) else {
            panic!("taken")
        };
        assert_eq!(error.to_string(), "found the input \"a\\nb\", expected a name without newlines");
        let list = InputList::new("cat", ["a"].iter().map(Path::new), true).unwrap();
        assert!(Path::new(list.variable()).is_absolute());
    }
}
