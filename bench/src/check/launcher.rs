//! What the launcher is promised to cost at most, in milliseconds.
//!
//! An exec is judged by the median of what it takes longer than one beside it without the launcher.
//! A killed keeper is judged by the longest time without a tick: the promise is of each kill, not
//! of most. One late kill of a hundred says nothing (the interval of a largest value reaches down
//! to the fourth largest), and the row is measured again; four are a broken promise.

use serde::Serialize;

use kernel_sim::launch::output::User;

use crate::check::{Settled, Verdict, settle};
use crate::launching::{Launching, LaunchingError, PROGRAM};
use crate::statistics::{Estimate, Spread, quantile};

/// The most that an exec may take longer.
const EXEC_MILLIS: f64 = 3.0;

/// The most that a clock may stand still when its keeper is killed.
const STILL_MILLIS: f64 = 100.0;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Execs of each kind.
    pub execs: usize,
    /// Keepers that are killed.
    pub kills: usize,
}

/// A promise of the launcher's.
#[derive(Clone, Debug)]
pub struct Row {
    /// What is measured.
    pub name: String,
    /// What it is compared with.
    pub against: String,
    user: User,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Exec,
    /// Beside so many processes that never rest.
    Kill {
        busy: usize,
    },
}

/// A row that cannot be measured here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Which.
    pub name: String,
    /// Why.
    pub why: String,
}

/// A measured row.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// What was measured.
    pub name: String,
    /// What it was compared with.
    pub against: String,
    /// Milliseconds.
    pub millis: Millis,
    /// Milliseconds of what it was compared with.
    pub against_millis: Millis,
    /// What was judged of the two.
    pub judged: &'static str,
    /// That in milliseconds, with its 95 % interval.
    pub found: Interval,
    /// The most that was promised, in milliseconds.
    pub target: f64,
    /// What it came to.
    pub verdict: Verdict,
    /// Measurements that it took.
    pub attempts: u32,
}

/// The spread of a series of which the longest counts.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Millis {
    /// The shortest.
    pub min: f64,
    /// The middle one.
    pub median: f64,
    /// 99 of 100 are shorter.
    pub p99: f64,
    /// The longest.
    pub most: f64,
}

/// A value and its 95 % interval.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Interval {
    /// The value.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// All rows; `cpus` busy processes run beside the keepers of some.
#[must_use]
pub fn all(cpus: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for user in User::ALL {
        let row = |name: &str, against: &str, what| Row {
            name: format!("run: {name}, as {}", user.name()),
            against: against.to_owned(),
            user,
            what,
        };
        rows.push(row(&format!("exec of {PROGRAM}"), "without run", What::Exec));
        let kill = "no tick, keeper killed";
        rows.push(row(kill, "left alone", What::Kill { busy: 0 }));
        let kill = format!("{kill}, {cpus} CPUs busy");
        rows.push(row(&kill, "left alone", What::Kill { busy: cpus }));
    }
    rows
}

/// Those of the rows that can be measured here, and those that cannot.
///
/// # Errors
/// That the launcher fails where it should not.
pub fn possible(
    rows: Vec<Row>,
    launching: &Launching,
) -> Result<(Vec<Row>, Vec<LeftOut>), LaunchingError> {
    let (mut possible, mut left_out) = (Vec::new(), Vec::new());
    for user in User::ALL {
        let mut of_user = rows.iter().filter(|row| row.user == user).peekable();
        if of_user.peek().is_none() {
            continue;
        }
        match launching.cannot(user)? {
            None => possible.extend(of_user.cloned()),
            Some(why) => {
                let left = |row: &Row| LeftOut { name: row.name.clone(), why: why.clone() };
                left_out.extend(of_user.map(left));
            }
        }
    }
    Ok((possible, left_out))
}

impl Row {
    /// Measures the row, again if it has to be; `step` is called as many times as [`Self::steps`]
    /// says for each measurement.
    ///
    /// # Errors
    /// Why it cannot be measured.
    pub fn run(
        &self,
        launching: &Launching,
        plan: &Plan,
        mut step: impl FnMut(),
    ) -> Result<Outcome, LaunchingError> {
        let (target, judged) = match self.what {
            What::Exec => (EXEC_MILLIS, "median difference"),
            What::Kill { .. } => (STILL_MILLIS, "longest"),
        };
        let Settled { measured: [millis, against_millis], estimate, verdict, attempts } =
            settle(Some(target), || {
                let series = self.measure(launching, plan, &mut step)?;
                let estimate = self.estimate(&series);
                Ok::<_, LaunchingError>((series, estimate))
            })?;
        let Estimate { median: value, low, high } = estimate;
        Ok(Outcome {
            name: self.name.clone(),
            against: self.against.clone(),
            millis: Millis::of(&millis),
            against_millis: Millis::of(&against_millis),
            judged,
            found: Interval { value, low, high },
            target,
            verdict,
            attempts,
        })
    }

    /// Steps of one measurement.
    #[must_use]
    pub fn steps(&self, plan: &Plan) -> usize {
        match self.what {
            What::Exec => plan.execs,
            What::Kill { .. } => plan.kills,
        }
    }

    fn measure(
        &self,
        launching: &Launching,
        plan: &Plan,
        step: &mut impl FnMut(),
    ) -> Result<[Vec<f64>; 2], LaunchingError> {
        match self.what {
            What::Exec => self.execs(launching, plan.execs, step),
            What::Kill { busy } => launching.kills(self.user, busy, plan.kills, step),
        }
    }

    /// Milliseconds of execs, launched and bare, in turn; every other time in reverse order.
    fn execs(
        &self,
        launching: &Launching,
        execs: usize,
        step: &mut impl FnMut(),
    ) -> Result<[Vec<f64>; 2], LaunchingError> {
        let spawner = |is_launched| launching.spawner(self.user, is_launched);
        let mut spawners = [spawner(true)?, spawner(false)?];
        let mut series = [Vec::new(), Vec::new()];
        // The first of each reads what the others find in the page cache.
        for spawner in &mut spawners {
            spawner.spawn()?;
        }
        for round in 0..execs {
            for turn in [0, 1] {
                let which = (turn + round) % 2;
                series[which].push(spawners[which].spawn()? / 1e6);
            }
            step();
        }
        Ok(series)
    }

    fn estimate(&self, [millis, against]: &[Vec<f64>; 2]) -> Estimate {
        match self.what {
            What::Exec => {
                let more: Vec<f64> = millis.iter().zip(against).map(|(a, b)| a - b).collect();
                Estimate::of(&more)
            }
            What::Kill { .. } => Estimate::of_largest(millis),
        }
    }
}

impl Millis {
    fn of(values: &[f64]) -> Self {
        let Spread { min, median, p99 } = Spread::of(values);
        Self { min, median, p99, most: quantile(values, 1.0) }
    }
}
