//! The table, and the data file and plot beside it.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write;

use anyhow::Result;
use serde_json::json;

use crate::statistics::{Estimate, median, ratio};
use crate::variants::BASELINE;

/// What a request costs, by variant, once for each round.
pub struct Measured {
    pub costs: Vec<(String, Vec<f64>)>,
}

impl Measured {
    fn of(&self, variant: &str) -> Option<&[f64]> {
        let found = self.costs.iter().find(|(name, _)| name == variant);
        found.map(|(_, series)| series.as_slice())
    }
}

pub struct Report {
    unit: &'static str,
    loads: Vec<(String, Measured)>,
}

/// One line of the table.
struct Row<'a> {
    load: &'a str,
    variant: &'a str,
    cost: f64,
    to_baseline: Estimate,
    /// To Envoy's own mirroring of the same share.
    to_native: Option<Estimate>,
}

impl Report {
    /// Of costs in this unit.
    pub fn new(unit: &'static str) -> Self {
        Self { unit, loads: Vec::new() }
    }

    pub fn add(&mut self, load: String, measured: Measured) {
        self.loads.push((load, measured));
    }

    /// Writes benches/results.json and benches/results.svg.
    pub fn save(&self) -> Result<()> {
        let top = concat!(env!("CARGO_MANIFEST_DIR"), "/benches");
        let data: Vec<_> = self
            .loads
            .iter()
            .map(|(load, measured)| {
                let costs: BTreeMap<_, _> = measured.costs.iter().cloned().collect();
                json!({ "load": load, "microseconds": costs })
            })
            .collect();
        std::fs::write(format!("{top}/results.json"), serde_json::to_string(&data)?)?;
        std::fs::write(format!("{top}/results.svg"), self.plot())?;
        Ok(())
    }

    fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.loads.iter().flat_map(|(load, measured)| {
            let baseline = measured.of(BASELINE).unwrap_or_default();
            measured.costs.iter().map(move |(variant, series)| Row {
                load,
                variant: variant.as_str(),
                cost: median(series.clone()),
                to_baseline: ratio(series, baseline),
                to_native: native_twin(variant)
                    .and_then(|twin| measured.of(&twin))
                    .map(|native| ratio(series, native)),
            })
        })
    }

    /// Each variant's ratio to no filter as a bar, with its interval.
    fn plot(&self) -> String {
        const SCALE: f64 = 180.0;
        const LEFT: f64 = 200.0;
        const STEP: f64 = 20.0;
        let rows: Vec<Row> = self.rows().collect();
        let height = STEP * (rows.len() as f64 + 2.0);
        let mut svg = format!(
            "<svg xmlns='http://www.w3.org/2000/svg' width='800' height='{height}' \
             font-family='sans-serif' font-size='12'><rect width='100%' height='100%' fill='white'/>\n\
             <text x='{LEFT}' y='14'>CPU time of Envoy per request, divided by that without a filter</text>\n"
        );
        for (n, row) in rows.iter().enumerate() {
            let y = STEP * (n as f64 + 1.5);
            let Estimate { low, median, high } = row.to_baseline;
            let color = if row.variant.starts_with("filter") { "#2b6cb0" } else { "#a0aec0" };
            let (width, middle) = (median * SCALE, y + 6.0);
            let (from, to) = (LEFT + low * SCALE, LEFT + high * SCALE);
            let label = LEFT + high.max(median) * SCALE + 6.0;
            let _ = writeln!(
                svg,
                "<text x='{}' y='{}' text-anchor='end'>{}, {}</text>\
                 <rect x='{LEFT}' y='{}' width='{width:.1}' height='12' fill='{color}'/>\
                 <path d='M{from:.1} {middle}H{to:.1}' stroke='black'/>\
                 <text x='{label:.1}' y='{}'>{median:.2}</text>",
                LEFT - 8.0,
                y + 10.0,
                row.load,
                row.variant,
                y,
                y + 10.0,
            );
        }
        svg + "</svg>\n"
    }
}

/// `filter 5 %` is compared with `native 5 %`.
fn native_twin(variant: &str) -> Option<String> {
    let share = variant.strip_prefix("filter").or_else(|| variant.strip_prefix("other"))?;
    Some(format!("native{share}"))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = self.unit;
        writeln!(f, "| load | variant | {unit} | × no filter | × native |\n|---|---|---|---|---|")?;
        for row in self.rows() {
            let show = |it: Estimate| format!("{:.3} ({:.3}–{:.3})", it.median, it.low, it.high);
            let native = row.to_native.map(show).unwrap_or_default();
            let (load, variant, cost) = (row.load, row.variant, row.cost);
            let baseline = show(row.to_baseline);
            writeln!(f, "| {load} | {variant} | {cost:.1} | {baseline} | {native} |")?;
        }
        Ok(())
    }
}
