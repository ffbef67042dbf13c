//! Short names of policies for tables: the name with its parameters, and only as much of a file path as is
//! needed to distinguish policies.

use std::collections::BTreeSet;

/// The parameter of a policy that names a file.
const FILE: &str = ":file=";

/// The names of these policies in tables and pages, in their order. `yarn-capacity:file=today/queues.xml`
/// becomes `yarn-capacity:file=queues.xml`, unless another policy would get the same name. Then both keep as
/// many folders as they need to differ. Documents contain the full names. O(n² · folders) for n policies.
pub fn shown<'a>(policies: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let policies: Vec<&str> = policies.into_iter().collect();
    let distinct: BTreeSet<&str> = policies.iter().copied().collect();
    let short = |policy: &str| {
        let folders = policy.matches('/').count();
        let tells = |kept: &usize| {
            let name = with_folders(policy, *kept);
            distinct.iter().all(|other| *other == policy || with_folders(other, *kept) != name)
        };
        let kept = (0..folders).find(tells).unwrap_or(folders);
        with_folders(policy, kept)
    };
    policies.iter().map(|policy| short(policy)).collect()
}

/// The name of a single policy; see [`shown`].
pub fn shown_alone(policy: &str) -> String {
    with_folders(policy, 0)
}

/// The policy with at most `folders` folders before its file name. Command lines stay unchanged.
fn with_folders(policy: &str, folders: usize) -> String {
    let Some((before, after)) = policy.split_once(FILE).filter(|_| !policy.starts_with("command:")) else {
        return policy.to_owned();
    };
    let (path, rest) = after.split_at(after.find(':').unwrap_or(after.len()));
    let from = path.rmatch_indices('/').nth(folders).map_or(0, |(at, _)| at + 1);
    format!("{before}{FILE}{}{rest}", &path[from..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_called_by_its_name_unless_two_have_it() {
        let found = shown([
            "fair:by=flow",
            "yarn-fair:file=/etc/hadoop/fair.xml:cores=2",
            "yarn-capacity:file=site/a/queues.xml",
            "yarn-capacity:file=site/b/queues.xml",
            "yarn-capacity:file=queues.xml",
            "command:python3 mine.py :file=a/b",
            "yarn-capacity:file=site/a/queues.xml",
        ]);
        let expected = [
            "fair:by=flow",
            "yarn-fair:file=fair.xml:cores=2",
            "yarn-capacity:file=a/queues.xml",
            "yarn-capacity:file=b/queues.xml",
            "yarn-capacity:file=queues.xml",
            "command:python3 mine.py :file=a/b",
            "yarn-capacity:file=a/queues.xml",
        ];
        assert_eq!(found, expected);
        assert_eq!(shown_alone("yarn-fair:file=a/b.xml"), "yarn-fair:file=b.xml");
    }
}
