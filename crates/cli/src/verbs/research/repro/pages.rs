//! `repro --report`: figures beside what their papers say, as a page. Figures that are in the directory
//! already, of the same specification, seeds and version of the program, are kept, so that a stopped run can
//! be continued.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use slackline_lab::counterexamples::printed;
use slackline_lab::papers::{self, ExperimentPage, FigurePage, Paper, Verdict};
use slackline_lab::provenance::{FILE, Maker, Provenance};
use slackline_lab::{Context, Figure, Spec, experiments, make};

use super::{Repro, chosen, note, threads};
use crate::terminal::out;
use crate::terminal::progress::Cells;
use crate::verbs::answer::Answer;

/// Seeds of a figure at most with `--quick`: enough for an interval.
const QUICK_SEEDS: u32 = 5;

/// An experiment whose figures are requested.
struct PageRequest {
    id: String,
    spec: Spec,
    paper: Option<Paper>,
    figures: Vec<Figure>,
}

/// Makes what is missing, and writes the page and the verdicts.
pub(super) fn run(args: &Repro, dir: &Path) -> anyhow::Result<Answer> {
    let requested = requested(args)?;
    let all: usize = requested.iter().map(|requested| requested.figures.len()).sum();
    let (mut made, mut at, mut kept) = (Vec::new(), 0, 0);
    for requested in requested {
        let folder = dir.join(&requested.id);
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("{}: cannot be created", folder.display()))?;
        let mut shown = Vec::new();
        for figure in &requested.figures {
            at += 1;
            let name = format!("{at} of {all}: {}/{}", requested.id, figure.id);
            let files = if args.again { None } else { found(args, &folder, figure)? };
            kept += usize::from(files.is_some());
            let files = match files {
                Some(files) => files,
                None => fresh(args, &folder, figure, &name)?,
            };
            shown.push(show(&folder, figure, requested.paper.as_ref(), files)?);
        }
        made.push(ExperimentPage {
            id: requested.id,
            title: requested.spec.title,
            paper: requested.paper,
            figures: shown,
        });
    }
    if kept > 0 {
        out::talk(format_args!("{kept} of {all} figures exist and are kept; --again makes them again"));
    }
    // What is in print is shown where every paper is.
    let printed = if args.experiment.is_none() && args.own().is_none() {
        printed().map_err(|problem| anyhow::anyhow!("counterexamples: {problem}"))?
    } else {
        Vec::new()
    };
    out::text(Some(&dir.join("verdicts.csv")), &papers::verdicts(&made))?;
    out::text(Some(&dir.join("index.html")), &papers::page(&made, &printed))?;
    summary(&made);
    Ok(Answer::Yes)
}

fn requested(args: &Repro) -> anyhow::Result<Vec<PageRequest>> {
    let whole = |id: &str, spec: Spec, paper: Option<Paper>, ids: &[String]| -> anyhow::Result<PageRequest> {
        let figures = chosen(&spec, ids)?.into_iter().cloned().collect();
        Ok(PageRequest { id: id.to_owned(), spec, paper, figures })
    };
    if let Some(path) = args.own() {
        let spec = super::specification(args)?.context("expected a specification")?;
        let id = path.file_stem().map_or_else(|| "figures".into(), |stem| stem.to_string_lossy());
        return Ok(vec![whole(&id, spec, None, &args.figures)?]);
    }
    let one = args.known();
    let asked = experiments().iter().filter(|experiment| one.is_none_or(|one| one.id == experiment.id));
    asked
        .map(|experiment| {
            let spec = experiment.spec()?;
            let paper = experiment.paper(&spec)?;
            whole(experiment.id, spec, Some(paper), &args.ids())
        })
        .collect()
}

/// Seeds that a figure is averaged over here.
fn seeds(args: &Repro, figure: &Figure) -> u32 {
    args.seeds.unwrap_or(if args.quick { figure.seeds.min(QUICK_SEEDS) } else { figure.seeds })
}

/// The names of a figure's files if they are there and are what would be made.
fn found(args: &Repro, folder: &Path, figure: &Figure) -> anyhow::Result<Option<Vec<String>>> {
    let csv = format!("{}.csv", figure.id);
    let Ok(text) = std::fs::read_to_string(folder.join(&csv)) else { return Ok(None) };
    let path = folder.join(FILE);
    let Ok(known) = std::fs::read_to_string(&path) else { return Ok(None) };
    let known = Provenance::parse(&known).with_context(|| path.display().to_string())?;
    let now = Maker::this(args.commit.clone());
    let current = known.of_figure(&figure.id).all(|(_, maker)| maker.is_current(&now));
    let files: Vec<String> = known.of_figure(&figure.id).map(|(name, _)| name.clone()).collect();
    let same = current
        && files.contains(&csv)
        && papers::fits(&text, figure, seeds(args, figure))
        && files.iter().all(|name| folder.join(name).is_file());
    Ok(same.then_some(files))
}

/// Makes a figure and notes who made it; the note comes last, so that half a figure is made again.
fn fresh(args: &Repro, folder: &Path, figure: &Figure, name: &str) -> anyhow::Result<Vec<String>> {
    out::talk(format_args!("{name}: {}", figure.title));
    let artifacts = {
        let cells = Cells::new();
        let context = Context {
            seeds: Some(seeds(args, figure)),
            threads: threads(args),
            progress: &|done, of| cells.at(done, of),
            tell: &|remark| out::talk(format_args!("{remark}")),
        };
        make(figure, &context)?
    };
    for artifact in &artifacts {
        super::write(Some(folder), artifact)?;
    }
    note(folder, &artifacts, &Maker::this(args.commit.clone()).of(&figure.id))?;
    Ok(artifacts.into_iter().map(|artifact| artifact.name).collect())
}

/// Reads a figure's files, and draws its rows if they are measures.
fn show(
    folder: &Path,
    figure: &Figure,
    paper: Option<&Paper>,
    mut files: Vec<String>,
) -> anyhow::Result<FigurePage> {
    let read = |name: &str| {
        let path: PathBuf = folder.join(name);
        std::fs::read_to_string(&path).with_context(|| format!("{}: cannot be read", path.display()))
    };
    let csv = format!("{}.csv", figure.id);
    files.sort_by_key(|name| *name != csv);
    let rows = papers::rows(&read(&csv)?);
    let drawn = papers::picture(&figure.title, paper.and_then(|paper| paper.claim(&figure.id)), &rows)
        .map_err(|problem| anyhow::anyhow!("{}: {problem}", figure.id))?;
    let pictures = if let Some(picture) = drawn {
        let name = format!("{}.svg", figure.id);
        out::text(Some(&folder.join(&name)), &picture)?;
        if !files.contains(&name) {
            files.push(name);
        }
        vec![picture]
    } else {
        let svgs = files.iter().filter(|name| Path::new(name).extension().is_some_and(|e| e == "svg"));
        svgs.map(|name| read(name)).collect::<Result<_, _>>()?
    };
    Ok(FigurePage { figure: figure.clone(), rows, files, pictures })
}

fn summary(made: &[ExperimentPage]) {
    let verdicts: Vec<Verdict> = made.iter().flat_map(ExperimentPage::judged).collect();
    let count = |verdict: Verdict| verdicts.iter().filter(|found| **found == verdict).count();
    out::talk(format_args!(
        "{} figures: {} confirmed, {} better, {} differ, {} shown without a claim to check",
        verdicts.len(),
        count(Verdict::Confirmed),
        count(Verdict::Better),
        count(Verdict::Differs),
        count(Verdict::Shown)
    ));
}
