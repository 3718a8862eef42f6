//! Four layouts of the page under the same reader: warm, cold, with the clock's words loaded
//! before the counter and after it.
//!
//! The message that this answers objects that two scales push MONOTONIC out of the first cache
//! line. Warm that costs nothing; cold it costs a second miss, unless both lines are asked for
//! before the counter's serialising instruction.

use std::fmt::Write as _;

use datapage::{ClockId, PageValues};
use serde_json::json;

use super::Bench;
use crate::chart::{Body, Chart, NANOSECONDS};
use crate::cold;
use crate::model::{
    AFTER_THE_COUNTER, BEFORE_THE_COUNTER, Layout, ModelPage, Ours, Reader, SetPerClocksource,
    SingleClocksource, SixteenClocksources, lines,
};
use crate::report::{Noise, Report};
use crate::rounds::Plan;
use crate::statistics::Spread;
use crate::subject::Subject;

const CLOCKS: [(&str, ClockId); 5] = [
    ("REALTIME", ClockId::REALTIME),
    ("MONOTONIC", ClockId::MONOTONIC),
    ("BOOTTIME", ClockId::BOOTTIME),
    ("TAI", ClockId::TAI),
    ("MONOTONIC_RAW", ClockId::MONOTONIC_RAW),
];

/// A reader, its page, and what a read touches.
struct Variant {
    layout: &'static str,
    clock: &'static str,
    lines: usize,
    page: Box<ModelPage>,
    publish: fn(&ModelPage, &PageValues),
    /// Loads before the counter, and after it.
    readers: [ReadFn; 2],
}

type ReadFn = unsafe fn(*const u8, &mut [u64; 2]) -> u32;

/// Nanoseconds: warm with loads before and after, cold with loads before and after.
type Costs = [Spread; 4];

pub(super) fn measure(bench: &Bench<'_, '_>) -> Report {
    let mut variants = Vec::new();
    for (clock, id) in CLOCKS {
        variants.extend(variant::<Ours>(clock, id));
        variants.extend(variant::<SixteenClocksources>(clock, id));
        variants.extend(variant::<SetPerClocksource>(clock, id));
        variants.extend(variant::<SingleClocksource>(clock, id));
    }
    let values = bench.setup.counter.values();
    for variant in &variants {
        (variant.publish)(&variant.page, &values);
    }
    let mut noise = Noise::default();
    let warm = each(bench, "layouts, warm", &variants, bench.plan(), warm_read, &mut noise);
    let cold_plan = Plan { samples: 3, sample_nanos: 12_000.0, ..bench.plan() };
    let cold = each(bench, "layouts, cold", &variants, cold_plan, cold_read, &mut noise);
    let costs: Vec<Costs> = warm
        .chunks(2)
        .zip(cold.chunks(2))
        .map(|(warm, cold)| [warm[0], warm[1], cold[0], cold[1]])
        .collect();
    Report {
        table: "layout",
        title: "Four layouts of the page under the same reader",
        text: text(&variants, &costs),
        rows: variants
            .iter()
            .zip(&costs)
            .map(|(variant, costs)| {
                json!({ "layout": variant.layout, "clock": variant.clock, "lines": variant.lines,
                        "warm_ns": { "loads_before": costs[0], "loads_after": costs[1] },
                        "cold_ns": { "loads_before": costs[2], "loads_after": costs[3] } })
            })
            .collect(),
        notes: noise.notes(),
        charts: vec![chart(&variants, &costs)],
    }
}

fn variant<L: Layout>(clock: &'static str, id: ClockId) -> Option<Variant> {
    Some(Variant {
        layout: L::NAME,
        clock,
        lines: lines::<L>(id)?,
        page: ModelPage::new(),
        publish: |page, values| page.publish::<L>(values),
        readers: match id {
            ClockId::REALTIME => readers::<L, 0>(),
            ClockId::MONOTONIC => readers::<L, 1>(),
            ClockId::MONOTONIC_RAW => readers::<L, 4>(),
            ClockId::BOOTTIME => readers::<L, 7>(),
            _ => readers::<L, 11>(),
        },
    })
}

fn readers<L: Layout, const CLOCK: i32>() -> [ReadFn; 2] {
    [Reader::<L, CLOCK, BEFORE_THE_COUNTER>::read, Reader::<L, CLOCK, AFTER_THE_COUNTER>::read]
}

/// Measures both readers of each variant, all interleaved; spreads in the variants' order.
fn each<'v>(
    bench: &Bench<'_, '_>,
    what: &str,
    variants: &'v [Variant],
    plan: Plan,
    subject: fn(&'v Variant, ReadFn) -> Subject<'v>,
    noise: &mut Noise,
) -> Vec<Spread> {
    let mut subjects: Vec<Subject<'_>> = variants
        .iter()
        .flat_map(|variant| {
            let name = format!("{}, {}", variant.layout, variant.clock);
            variant.readers.map(|read| subject(variant, read).named(&name))
        })
        .collect();
    let measured = bench.interleave(what, &mut subjects, &plan);
    noise.add(&subjects, &measured);
    (0..subjects.len()).map(|index| measured.spread(index)).collect()
}

fn warm_read(variant: &Variant, read: ReadFn) -> Subject<'_> {
    let page = variant.page.address();
    Subject::new("warm", move |calls| {
        let mut time = [0; 2];
        for _ in 0..calls {
            // SAFETY: the page is alive and holds the reader's layout.
            std::hint::black_box(unsafe { read(page, &mut time) });
        }
        std::hint::black_box(time);
    })
}

fn cold_read(variant: &Variant, read: ReadFn) -> Subject<'_> {
    let page = variant.page.address();
    cold::read("cold", page, size_of::<ModelPage>(), move || {
        let mut time = [0; 2];
        // SAFETY: the page is alive and holds the reader's layout.
        std::hint::black_box(unsafe { read(page, &mut time) });
    })
}

fn text(variants: &[Variant], costs: &[Costs]) -> String {
    let mut text = format!(
        "{:<14} {:<36} {:>5} {:>37} {:>41}\n{:<14} {:<36} {:>5} {:>18} {:>18} {:>20} {:>20}\n",
        "",
        "",
        "cache",
        "warm ns (min, p99), loads",
        "cold ns (min, p99), loads",
        "clock",
        "layout",
        "lines",
        "before",
        "after",
        "before",
        "after"
    );
    for (variant, costs) in variants.iter().zip(costs) {
        let warm = |Spread { min, median, p99 }| format!("{median:.1} ({min:.1}, {p99:.1})");
        let cold = |Spread { min, median, p99 }| format!("{median:.0} ({min:.0}, {p99:.0})");
        let [before, after, cold_before, cold_after] = *costs;
        let _ = writeln!(
            text,
            "{:<14} {:<36} {:>5} {:>18} {:>18} {:>20} {:>20}",
            variant.clock,
            variant.layout,
            variant.lines,
            warm(before),
            warm(after),
            cold(cold_before),
            cold(cold_after)
        );
    }
    text.push_str(
        "\nbefore, after: the clock's words are loaded before the counter is read, or after it\n",
    );
    text
}

fn chart(variants: &[Variant], costs: &[Costs]) -> Chart {
    let series = |name: &str, which: usize| {
        (name.to_owned(), costs.iter().map(|costs| costs[which]).collect())
    };
    Chart {
        file: "layout",
        title: "A read with the page in and out of the caches, by layout".to_owned(),
        value_label: NANOSECONDS,
        body: Body::Bars {
            categories: variants
                .iter()
                .map(|variant| format!("{}: {}", variant.clock, variant.layout))
                .collect(),
            series: vec![
                series("cold, loads before the counter", 2),
                series("cold, loads after the counter", 3),
                series("warm, loads before", 0),
            ],
        },
    }
}
