//! Recognises files of other programs by how they begin, so that a message can name them.

use super::avro;

/// How many characters of a text are searched.
const HEAD: usize = 4096;

/// First bytes of files that are not text.
const MAGIC: [(&[u8], &str); 14] = [
    (b"PK\x03\x04", "a zip archive, as projects of Azkaban come in"),
    (b"PAR1", "a Parquet file"),
    (b"ORC", "an ORC file"),
    (b"Obj\x01", "an Avro file"),
    (b"SEQ", "a Hadoop SequenceFile"),
    (b"BZh", "a file compressed with bzip2"),
    (b"\xfd7zXZ\x00", "a file compressed with xz"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"\x82SNAPPY\x00", "a file compressed with Snappy, as Spark can write event logs"),
    (b"\xff\x06\x00\x00sNaPpY", "a file compressed with Snappy"),
    (b"ZV\x00", "a file compressed with LZF, as Spark can write event logs"),
    (b"ZV\x01", "a file compressed with LZF, as Spark can write event logs"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"%PDF", "a PDF file"),
];

/// The position of the letters in a tar header.
const TAR_AT: usize = 257;

/// Words that all occur at the beginning of a text, and the kind of such a text.
const MARKS: [(&[&str], &str); 20] = [
    (&["Job JOBID="], "a job history file of Hadoop 1"),
    (&["yarn.scheduler.capacity."], "the configuration of Hadoop's CapacityScheduler"),
    (&["<allocations>"], "the allocations of Hadoop's FairScheduler"),
    (&["<configuration>", "<property>"], "a configuration file of Hadoop"),
    (&["<coordinator-app"], "a coordinator of Oozie (import its workflows)"),
    (&["<bundle-app"], "a bundle of Oozie (import its workflows)"),
    (&["<adag"], "an abstract workflow of Pegasus (DAX)"),
    (&["<platform"], "a platform of SimGrid"),
    (&["\"traceEvents\""], "a timeline for Chrome or Perfetto"),
    (&["\"dag\"", "\"_dag_id\""], "a DAG of Airflow"),
    (&["\"dag\"", "\"dag_id\""], "a DAG of Airflow"),
    (&["from airflow"], "a DAG of Airflow in Python"),
    (&["import airflow"], "a DAG of Airflow in Python"),
    (&["\"dbt_schema_version\""], "a document of dbt"),
    (&["#SBATCH"], "a job script of Slurm"),
    (&["JobID", "JobName", "-----"], "the output of sacct without --parsable2"),
    (
        &["JOBID", "PARTITION", "NODELIST"],
        "the output of squeue (use that of sacct --parsable2, which has finished jobs)",
    ),
    (&["task_id\thash\tnative_id"], "a trace of Nextflow"),
    (&["{\"ev\":\"", "\"version\":", "\"data\":"], BALLISTA),
    (&["\"collection_id\"", "\"instance_index\""], "events of Google's cluster trace"),
];

pub(crate) const BALLISTA: &str =
    "an event log of Ballista (convert its stages to jobs of a workload in lines, docs/formats.md)";

/// Whether a text is in a format.
type FormatTest = fn(&str) -> bool;

/// Formats of Hadoop that an importer reads, and its name.
const HADOOP: [(FormatTest, &str); 3] = [
    (is_rumen, "a job trace of Rumen (--from rumen)"),
    (is_job_history, "a job history of Hadoop (--from jhist)"),
    (is_sls, "a trace of Hadoop's Scheduler Load Simulator (--from sls)"),
];

/// How a job history of Hadoop 1 begins.
pub(crate) const HADOOP_1: &str = "Meta VERSION=";

/// Fields that all occur at the beginning of a JSON object, and its kind.
const OBJECTS: [(&[&str], &str); 4] = [
    (&["name", "children"], "the topology of a Rumen trace (--from rumen:topology=FILE beside the trace)"),
    (
        &["rack", "nodes", "node"],
        "a file of nodes of Hadoop's Scheduler Load Simulator: pass its trace, and this file with --from sls:nodes=FILE",
    ),
    (&["workloads", "job_classes"], SYNTH),
    (&["num_jobs", "workloads"], SYNTH),
];

const SYNTH: &str =
    "a description of jobs to be drawn by Hadoop's Scheduler Load Simulator (SYNTH), without jobs";

/// The kind of bytes that are not text.
pub(crate) fn of_bytes(bytes: &[u8]) -> Option<&'static str> {
    if bytes.get(TAR_AT..TAR_AT + 5) == Some(b"ustar") {
        return Some("a tar archive");
    }
    MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, name)| *name)
}

/// The kind of a text.
pub(crate) fn of_text(text: &str) -> Option<&'static str> {
    let head = head(text);
    let has = |words: &&[&str]| words.iter().all(|word| head.contains(word));
    let found = MARKS.iter().find(|(words, _)| has(words)).map(|(_, name)| *name);
    found
        .or_else(|| of_hadoop(text))
        .or_else(|| of_bytes(text.as_bytes()))
        .or_else(|| is_coflows(head).then_some("a trace of coflows"))
}

/// The kind of a Hadoop text, with the option that reads it if there is one: by words that no document of
/// ours begins with.
pub(crate) fn of_hadoop(text: &str) -> Option<&'static str> {
    let head = head(text);
    let has = |fields: &&[&str]| fields.iter().all(|field| head.contains(&format!("\"{field}\"")));
    let is_object = head.trim_start().starts_with('{');
    let object = || OBJECTS.iter().find(|(fields, _)| is_object && has(fields)).map(|(_, name)| *name);
    HADOOP.iter().find(|(is_of, _)| is_of(text)).map(|(_, name)| *name).or_else(object)
}

/// Whether a text begins as a trace of Rumen does: a job with its id and other fields that only such a one
/// has.
pub(crate) fn is_rumen(text: &str) -> bool {
    let head = head(text);
    let has = |field: &str| head.contains(&format!("\"{field}\""));
    head.trim_start().starts_with('{')
        && has("jobID")
        && ["mapTasks", "submitTime", "computonsPerMapInputByte"].iter().any(|field| has(field))
}

/// Whether a text begins as a job history does; that of Hadoop 1 is recognised to be refused by its name.
pub(crate) fn is_job_history(text: &str) -> bool {
    text.starts_with(avro::JSON) || text.starts_with(HADOOP_1)
}

/// Whether a text begins as a trace of the Scheduler Load Simulator does.
pub(crate) fn is_sls(text: &str) -> bool {
    let head = head(text);
    head.trim_start().starts_with('{') && head.contains("\"job.tasks\"")
}

fn head(text: &str) -> &str {
    text.char_indices().nth(HEAD).map_or(text, |(at, _)| &text[..at])
}

/// Whether the first line has the number of racks and of coflows, and the second is a coflow.
fn is_coflows(head: &str) -> bool {
    let mut lines = head.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let (Some(first), Some(second)) = (lines.next(), lines.next()) else { return false };
    let are_numbers = |cells: &[&str]| cells.iter().all(|cell| cell.parse::<u64>().is_ok());
    first.len() == 2
        && are_numbers(&first)
        && second.len() > 4
        && second.iter().any(|cell| cell.contains(':'))
}
