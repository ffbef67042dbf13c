//! A workload and a schedule as documents: written, read back, checked and printed.
//!
//! `cargo run -p slackline --example check_a_schedule [WORKLOAD]`
//!
//! The schedule records how its workload was shaped, so that nothing has to be said twice.
#![expect(clippy::print_stdout, reason = "an example shows something")]

use std::path::Path;

use slackline::import::{ScheduleDocument, Source, WorkloadOptions, check};
use slackline::plan::{self, Plan};
use slackline::report::{Figures, View, flows, verdict, write_schedule};
use slackline::trace::Importers;
use slackline::{Registry, model, trace};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let workload = if let Some(path) = std::env::args().nth(1) {
        Source::read(Path::new(&path))?
    } else {
        let draft = trace::generate::generator("purdue")?.generate(&[], model::Seed(1))?;
        Source::new("purdue.toml", trace::write_workload(&draft, trace::Format::Toml))
    };
    let mut loaded = workload.load(&WorkloadOptions::default())?;
    loaded.prepare(None)?;
    let registry = Registry::standard();
    let policy = plan::default_policy(&loaded.instance, &registry).ok_or("no policy plans this workload")?;
    let Plan::Schedule(planned) = plan::plan(&loaded.instance, &policy, plan::Options::default())? else {
        return Err(
            "several jobs on mixed speeds have progress requirements for a plan, which are no schedule"
                .into(),
        );
    };
    let (mut schedule, figures) =
        (planned.schedule.clone(), Figures::of_schedule(&planned.schedule, &planned.metrics));
    println!("{}", flows::table(&loaded.instance, &schedule, 10, &View::default()));

    let mut bytes = Vec::new();
    let meta = loaded.meta(loaded.options.clone(), 0, &schedule);
    write_schedule(&mut bytes, &loaded.instance, &mut schedule, &figures, &meta)?;
    let written = Source::new("plan.json", bytes);
    let document = ScheduleDocument::open(&written, &Importers::default())?;
    let decided = check(&document, &workload, WorkloadOptions::default(), None)?;
    print!("{}", verdict::line(&decided));
    Ok(())
}
