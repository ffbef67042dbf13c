//! The table of formats: their names, and the format of a file.
//!
//! A format is one file here that declares an `IMPORTER`, and one line in `TABLE`. Several files share these
//! modules: `dag` (edges around omitted nodes), `hadoop` (names of Hadoop's properties), `hadoop_log` (jobs
//! of Hadoop's logs), `objects` (JSON objects one after the other), `log` (slots, pools and second 0 of logs)
//! and `xml` (XML with positions).

mod alibaba;
mod azkaban;
mod batsim;
mod dag;
pub(crate) mod durations;
mod hadoop;
mod hadoop_log;
pub mod import;
pub mod importer;
mod jhist;
pub mod line_import;
mod log;
mod objects;
mod oozie;
pub mod options;
mod rumen;
mod sacct;
mod sls;
mod spark;
pub mod stream;
mod swf;
mod swim;
mod unsupported_formats;
mod wfformat;
mod woha_xml;
mod workload;

use slackline_model::params::Param;

use crate::importers::importer::Importer;
use crate::reading::folder::Folder;
use crate::reading::format::ending;

pub use unsupported_formats::unknown_format;

/// The formats of this crate, in the order in which they are listed.
const TABLE: &[Importer] = &[
    workload::TOML,
    workload::JSON,
    workload::YAML,
    workload::LINES,
    swim::IMPORTER,
    woha_xml::IMPORTER,
    oozie::IMPORTER,
    wfformat::IMPORTER,
    rumen::IMPORTER,
    jhist::IMPORTER,
    sls::IMPORTER,
    swf::IMPORTER,
    sacct::IMPORTER,
    alibaba::IMPORTER,
    spark::IMPORTER,
    batsim::IMPORTER,
    azkaban::IMPORTER,
];

const DOCUMENTS: &[Importer] = &[workload::TOML, workload::JSON, workload::YAML, workload::LINES];

/// Formats of workloads. By default every format of this crate.
#[derive(Clone, Debug)]
pub struct Importers(Vec<Importer>);

impl Default for Importers {
    fn default() -> Self {
        Self(TABLE.to_vec())
    }
}

impl Importers {
    /// These, and one more, instead of one of the same name if there is one.
    #[must_use]
    pub fn with(mut self, importer: Importer) -> Self {
        self.0.retain(|known| known.name != importer.name);
        self.0.push(importer);
        self
    }

    /// Every one, in the order in which they are listed.
    pub fn all(&self) -> &[Importer] {
        &self.0
    }

    /// The names, in the order in which they are listed.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|importer| importer.name)
    }

    pub fn get(&self, name: &str) -> Option<&Importer> {
        self.0.iter().find(|importer| importer.name == name)
    }

    /// Every parameter once, with the importer that is the first to declare it.
    pub fn params(&self) -> impl Iterator<Item = (&Importer, &'static Param)> {
        let all = || self.0.iter().flat_map(|i| i.params.iter().map(move |param| (i, param)));
        all()
            .enumerate()
            .filter(move |&(k, (_, param))| all().take(k).all(|(_, p)| p.name != param.name))
            .map(|(_, pair)| pair)
    }

    /// The format of a file: by the ending of its name (without that of a compression), or by its text if the
    /// ending is unknown or shared by several formats. A later format has precedence; if no format of the
    /// ending fits the text, our own documents come first, since their messages name the missing part.
    pub fn guess(&self, name: &str, text: &str) -> Option<&Importer> {
        let ending = ending(name);
        let named = |i: &&Importer| ending.as_deref().is_some_and(|ending| i.endings.contains(&ending));
        let fits = |i: &&Importer| (i.looks_like)(text);
        let ours = |i: &&Importer| DOCUMENTS.iter().any(|document| document.name == i.name);
        // Names in a document of ours may be words of other formats.
        let is_of_ours = text
            .trim_start()
            .strip_prefix('{')
            .is_some_and(|rest| rest.trim_start().starts_with("\"slackline\""));
        let later_first = || self.0.iter().rev().filter(|importer| ours(importer) || !is_of_ours);
        (later_first().filter(named).find(fits))
            .or_else(|| later_first().filter(named).find(ours))
            .or_else(|| later_first().find(named))
            .or_else(|| later_first().find(fits))
    }

    /// The formats that a folder could be in, later ones before earlier ones.
    pub fn of_folder(&self, folder: &Folder) -> impl Iterator<Item = &Importer> {
        self.0.iter().rev().filter(|known| known.folder.is_some_and(|known| (known.looks_like)(folder)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use slackline_model::params::Settings;

    use super::*;

    #[test]
    fn formats_are_guessed_by_name_then_by_content() {
        let cases = [
            ("a.TOML.gz", "", Some("toml")),
            ("a.yml", "", Some("yaml")),
            ("FB.tsv", "", Some("swim")),
            ("-", " \n{", Some("json")),
            ("-", "{\"schemaVersion\": \"1.5\"}", Some("wfformat")),
            ("w.json", "{\"schemaVersion\": \"1.5\"}", Some("wfformat")),
            ("w.json", "{\"slackline\": 1}", Some("json")),
            // Found by damaged inputs: a job called as a field of Batsim's.
            ("w.json", "{ \"slackline\": 1, \"flows\": [{\"jobs\": [{\"id\": \"subtime\"}]}]}", Some("json")),
            ("w.jsonl.zst", "", Some("jsonl")),
            ("-", "{\"slackline\": 1}\n{\"id\": \"f\"}", Some("jsonl")),
            ("-", "{\"slackline\": 1, \"flows\": []}", Some("json")),
            ("w.json", "nothing", Some("json")),
            ("w.toml", "{}", Some("toml")),
            ("-", "# ours\n\nslackline = 1\n", Some("toml")),
            ("-", "flows: []\nslackline: 1\n", Some("yaml")),
            ("trace.txt", "\njob0\t49\t49\t740773\t2339561\t627471\n", Some("swim")),
            ("-", "job0\t49\t49\tx\t2339561\t627471\n", None),
            ("w.xml", "<?xml version='1.0'?>\n<!-- <workflow-app> -->\n<workflow name='w'>", Some("woha")),
            ("-", " <a:workflow-app xmlns:a='uri:oozie:workflow:1.0'>", Some("oozie")),
            ("-", "<!DOCTYPE w [ <!ENTITY a 'b'> ]><workflows/>", Some("woha")),
            ("w.xml", "<html>", None),
            (
                "w.json.gz",
                "{ \"priority\": \"NORMAL\", \"jobID\": \"job_1_2\", \"submitTime\": 1}",
                Some("rumen"),
            ),
            ("job_1_2-3.jhist", "", Some("jhist")),
            ("-", "Avro-Json\n{}", Some("jhist")),
            ("job_1_2_conf", "Meta VERSION=\"1\" .\n", Some("jhist")),
            ("day.swf.gz", "", Some("swf")),
            ("-", "; Version: 2.2\n", Some("swf")),
            ("-", "1 0 5 10 4 90 -1 4 600 -1 1 3 1 1 2 1 -1 -1\n", Some("swf")),
            ("-", "; a comment\n", None),
            ("application_17_0001", "{\"Event\":\"SparkListenerLogStart\"}\n", Some("spark")),
            ("w.json", "{ \"nb_res\": 4, \"jobs\": [] }", Some("batsim")),
            ("nightly.flow", "", Some("azkaban")),
            ("-", "config: {}\nnodes:\n", Some("azkaban")),
            ("batch_task.csv", "M1,1,j_1,1,Terminated,1,2,100,0.3\n", Some("alibaba")),
            ("batch_task.csv", "1,2,3\n", None),
            ("accounts.txt", "JobID|State|Submit\n", Some("sacct")),
            ("-", "", None),
        ];
        let importers = Importers::default();
        for (name, text, expected) in cases {
            let found = importers.guess(name, text).map(|importer| importer.name);
            assert_eq!(found, expected, "{name:?} {text:?}");
        }
    }

    #[test]
    fn an_ending_goes_to_the_format_that_came_last() {
        let named = |name| Importer { name, endings: &["tsv"], looks_like: |_| false, ..swim::IMPORTER };
        let importers = Importers::default().with(named("first")).with(named("last"));
        assert_eq!(importers.guess("a.tsv", "nothing").map(|i| i.name), Some("last"));
        assert_eq!(
            importers.guess("a.tsv", "job0\t49\t49\t740773\t2339561\t627471\n").map(|i| i.name),
            Some("swim")
        );
    }

    #[test]
    fn declarations_are_in_order() {
        let mut seen: BTreeMap<&str, Param> = BTreeMap::new();
        for (k, importer) in TABLE.iter().enumerate() {
            assert!(TABLE[..k].iter().all(|other| other.name != importer.name), "{}", importer.name);
            Settings::defaults(importer.params);
            let texts = importer.params.iter().map(|param| param.help).chain([importer.summary]);
            for text in texts {
                assert!(!text.is_empty() && !text.ends_with('.') && text.len() < 100, "{text}");
            }
            for param in importer.params {
                let known = *seen.entry(param.name).or_insert(*param);
                assert_eq!(known, *param, "{} is declared in two ways", param.name);
            }
        }
        assert_eq!(Importers::default().params().count(), seen.len());
    }
}
