//! A plan: the order of the jobs and the progress requirements, and its compact binary form.
//!
//! The form (all numbers are varints: seven bits a byte, low ones first, the top bit for "more"):
//! the letters `SWP`, a version byte, cap, shortest, the number of jobs and the job at each place of
//! the order, the time unit (the greatest common divisor of all times to deadline, so that plans in
//! whole seconds or milliseconds are small), the number of steps, and for each step the time in units
//! by which it is later than the step before (for the first, its time to deadline), doubled, plus one
//! if more than one task is required more; then, in that case only, how many.
//!
//! Written by hand, because what keeps plans below the paper's 7 KB is the differences and the common unit,
//! not the varints: a library for varints would leave this code as long, and change the bytes.

use std::fmt;

use slackline_model::{FlowId, Instance, Span};

const MAGIC: [u8; 3] = *b"SWP";
const VERSION: u8 = 1;

/// The plan that the AM follows: the scheduling plan of one flow (section IV).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    cap: u32,
    shortest: Span,
    order: Vec<u32>,
    steps: Vec<Step>,
}

/// From `ttd` before the deadline on, `req` tasks should have been started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Time to the deadline.
    pub ttd: Span,
    /// Tasks in all.
    pub req: u64,
}

/// Why bytes are no plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// They do not begin as a plan does.
    NoPlan,
    /// A version other than ours.
    Version(u8),
    /// They end in the middle.
    Truncated,
    /// A number is out of its range.
    Number(&'static str),
    /// Bytes follow after the end.
    Trailing(usize),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPlan => write!(f, "found bytes that do not begin with SWP, expected a plan"),
            Self::Version(version) => write!(f, "found plan version {version}, expected version {VERSION}"),
            Self::Truncated => write!(f, "found the end of the plan in its middle"),
            Self::Number(what) => write!(f, "found a plan whose {what}"),
            Self::Trailing(bytes) => write!(f, "found {bytes} bytes after the end of the plan"),
        }
    }
}

impl std::error::Error for PlanError {}

/// Why a plan is not one of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The numbers of jobs and tasks of the plan.
    pub found: (usize, u64),
    /// The numbers of the flow.
    pub expected: (usize, u64),
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((found_jobs, found_tasks), (jobs, tasks)) = (self.found, self.expected);
        write!(
            f,
            "found a plan of {found_jobs} jobs and {found_tasks} tasks, expected {jobs} jobs and {tasks} tasks"
        )
    }
}

impl std::error::Error for Mismatch {}

impl Plan {
    /// A plan from its parts, see the getters.
    ///
    /// # Errors
    /// An order that does not have every job from 0 once, times to deadline that do not fall, tasks
    /// required that do not rise.
    pub fn new(cap: u32, shortest: Span, order: Vec<u32>, steps: Vec<Step>) -> Result<Self, PlanError> {
        let mut seen = vec![false; order.len()];
        for &job in &order {
            match seen.get_mut(job as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(PlanError::Number("order is not one of its jobs")),
            }
        }
        if steps.windows(2).any(|pair| pair[0].ttd <= pair[1].ttd) {
            return Err(PlanError::Number("times to deadline do not fall"));
        }
        let reqs = std::iter::once(0).chain(steps.iter().map(|step| step.req));
        if reqs.clone().zip(reqs.skip(1)).any(|(before, after)| after <= before) {
            return Err(PlanError::Number("required tasks do not increase from step to step"));
        }
        Ok(Self { cap, shortest, order, steps })
    }

    /// Slots of each kind the rehearsal used.
    pub fn cap(&self) -> u32 {
        self.cap
    }

    /// How long the flow takes with the whole cluster.
    pub fn shortest(&self) -> Span {
        self.shortest
    }

    /// The jobs, numbered from 0 in the order of the document; the first ones are served first.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// The progress requirements, times to deadline falling, tasks required rising.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The progress requirements alone.
    pub fn into_steps(self) -> Vec<Step> {
        self.steps
    }

    /// How long the rehearsal took; zero without tasks.
    pub fn length(&self) -> Span {
        self.steps.first().map_or(Span::ZERO, |step| step.ttd)
    }

    /// How many tasks the plan is for.
    pub fn tasks(&self) -> u64 {
        self.steps.last().map_or(0, |step| step.req)
    }

    /// Whether the plan can be one of that flow of an instance that was cut into tasks.
    ///
    /// # Errors
    /// Other numbers of jobs or tasks.
    pub fn fits(&self, instance: &Instance, flow: FlowId) -> Result<(), Mismatch> {
        let jobs = instance.flow(flow).jobs();
        let n_jobs = jobs.len();
        let phases = jobs.flat_map(|job| instance.job(job).phases()).map(|phase| instance.phase(phase));
        // No task starts in a phase of length 0.
        let with_tasks = phases.filter(|phase| !phase.is_without_length());
        let tasks = with_tasks.map(|phase| phase.tasks().map_or(1, |tasks| u64::from(tasks.count()))).sum();
        let (found, expected) = ((self.order.len(), self.tasks()), (n_jobs, tasks));
        if found == expected { Ok(()) } else { Err(Mismatch { found, expected }) }
    }

    /// The binary form; its length is the size that is reported.
    pub fn encode(&self) -> Vec<u8> {
        let unit = self.steps.iter().fold(0, |unit, step| gcd(unit, step.ttd.0)).max(1);
        let mut out = Vec::with_capacity(16 + self.order.len() + 5 * self.steps.len());
        out.extend(MAGIC);
        out.push(VERSION);
        put(&mut out, u64::from(self.cap));
        put(&mut out, self.shortest.0);
        put(&mut out, self.order.len() as u64);
        for &job in &self.order {
            put(&mut out, u64::from(job));
        }
        put(&mut out, unit);
        put(&mut out, self.steps.len() as u64);
        let mut before: Option<Step> = None;
        for step in &self.steps {
            let (late, more) = match before {
                None => (step.ttd.0 / unit, step.req),
                Some(before) => ((before.ttd.0 - step.ttd.0) / unit, step.req - before.req),
            };
            let many = u64::from(more > 1);
            put_wide(&mut out, u128::from(late) << 1 | u128::from(many));
            if many == 1 {
                put(&mut out, more);
            }
            before = Some(*step);
        }
        out
    }

    /// Reads the binary form. Never panics, and never allocates more than a few times the input.
    ///
    /// # Errors
    /// The reason why the bytes are no plan.
    pub fn decode(bytes: &[u8]) -> Result<Self, PlanError> {
        let mut reader = Reader { bytes };
        if reader.take(3)? != MAGIC {
            return Err(PlanError::NoPlan);
        }
        match reader.take(1)? {
            [VERSION] => {}
            other => return Err(PlanError::Version(other[0])),
        }
        let cap = reader.small("slot limit is too large")?;
        let shortest = Span(reader.number()?);
        let order = reader.order()?;
        let unit = reader.number()?;
        let steps = reader.steps(unit)?;
        match reader.bytes.len() {
            0 => Self::new(cap, shortest, order, steps),
            rest => Err(PlanError::Trailing(rest)),
        }
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn put(out: &mut Vec<u8>, number: u64) {
    put_wide(out, u128::from(number));
}

fn put_wide(out: &mut Vec<u8>, mut number: u128) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], PlanError> {
        let (head, rest) = self.bytes.split_at_checked(n).ok_or(PlanError::Truncated)?;
        self.bytes = rest;
        Ok(head)
    }

    /// A varint of at most 65 bits.
    fn wide(&mut self) -> Result<u128, PlanError> {
        let mut number = 0u128;
        for shift in (0..70).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u128::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(PlanError::Number("numbers are too long"))
    }

    fn number(&mut self) -> Result<u64, PlanError> {
        u64::try_from(self.wide()?).map_err(|_| PlanError::Number("numbers are too long"))
    }

    fn small(&mut self, what: &'static str) -> Result<u32, PlanError> {
        u32::try_from(self.number()?).map_err(|_| PlanError::Number(what))
    }

    /// A count of elements of a byte or more each, all of which must follow.
    fn count(&mut self) -> Result<usize, PlanError> {
        let count = self.number()?;
        usize::try_from(count).ok().filter(|&count| count <= self.bytes.len()).ok_or(PlanError::Truncated)
    }

    fn order(&mut self) -> Result<Vec<u32>, PlanError> {
        let count = self.count()?;
        (0..count).map(|_| self.small("order names an unknown job")).collect()
    }

    fn steps(&mut self, unit: u64) -> Result<Vec<Step>, PlanError> {
        const TIMES: PlanError = PlanError::Number("times to deadline are out of range");
        const TASKS: PlanError = PlanError::Number("tasks required are out of range");
        let count = self.count()?;
        let mut steps: Vec<Step> = Vec::with_capacity(count);
        for _ in 0..count {
            let packed = self.wide()?;
            let time =
                u64::try_from(packed >> 1).ok().and_then(|units| units.checked_mul(unit)).ok_or(TIMES)?;
            let more = if packed & 1 == 1 { self.number()? } else { 1 };
            let step = match steps.last() {
                None => Step { ttd: Span(time), req: more },
                Some(before) => Step {
                    ttd: Span(before.ttd.0.checked_sub(time).ok_or(TIMES)?),
                    req: before.req.checked_add(more).ok_or(TASKS)?,
                },
            };
            steps.push(step);
        }
        Ok(steps)
    }
}
