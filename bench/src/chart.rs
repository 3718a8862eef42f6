//! Drawing a table as SVG.
//!
//! Plain enough to be read in a terminal's image viewer and in a document: a title, axes with
//! units, a legend, values written on the bars, and how far the rounds scattered. Colours are those of Okabe and Ito, which people
//! with any kind of colour vision tell apart.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::statistics::Spread;

/// A drawing.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Name of its file, without the ending.
    pub file: &'static str,
    /// What it shows.
    pub title: String,
    /// What the values are, with their unit.
    pub value_label: &'static str,
    /// The values.
    pub body: Body,
}

/// What is drawn.
#[derive(Clone, Debug)]
pub enum Body {
    /// A group of horizontal bars for each category, a bar for each series.
    Bars {
        /// Names of the groups, from the top.
        categories: Vec<String>,
        /// Name and one value for each category: a bar to the median, and a thin line from the
        /// smallest value to the 99th percentile. NaN draws neither.
        series: Vec<(String, Vec<Spread>)>,
    },
    /// A line for each series over a logarithmic axis.
    Lines {
        /// What the axis shows, with its unit.
        axis_label: &'static str,
        /// Name and points.
        series: Vec<(String, Vec<(f64, f64)>)>,
    },
}

/// What most bars are.
pub const NANOSECONDS: &str =
    "nanoseconds per call: median of the rounds; line: fastest round to 99th percentile";

/// Why a chart was not drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw {file}: {message}")]
pub struct ChartError {
    file: String,
    message: String,
}

const PALETTE: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
];
const INK: RGBColor = RGBColor(40, 44, 52);
const GRID: RGBColor = RGBColor(225, 228, 232);
const WIDTH: u32 = 960;
const FONT: &str = "sans-serif";

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

impl Chart {
    /// Draws the chart into `directory`, which exists.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn draw(&self, directory: &Path) -> Result<std::path::PathBuf, ChartError> {
        let path = directory.join(format!("{}.svg", self.file));
        let failed = |message: String| ChartError { file: path.display().to_string(), message };
        let area = SVGBackend::new(&path, (WIDTH, self.height())).into_drawing_area();
        let drawn = area
            .fill(&WHITE)
            .map_err(|error| error.to_string())
            .and_then(|()| self.body(&area))
            .and_then(|()| area.present().map_err(|error| error.to_string()));
        drop(area);
        drawn.map_err(failed)?;
        Ok(path)
    }

    /// Pixels that the content needs.
    fn height(&self) -> u32 {
        match &self.body {
            Body::Bars { categories, series } => {
                let bars = categories.len() * (series.len() * BAR + GAP);
                u32::try_from(bars).unwrap_or(2000).min(4000) + 180
            }
            Body::Lines { .. } => 560,
        }
    }

    fn body(&self, area: &Area<'_>) -> Result<(), String> {
        let title = (FONT, 22).into_font().style(FontStyle::Bold).color(&INK);
        let inner = area.margin(10, 0, 0, 0);
        let inner = inner.titled(&self.title, title).map_err(text)?;
        match &self.body {
            Body::Bars { categories, series } => {
                let names: Vec<&str> = series.iter().map(|(name, _)| &**name).collect();
                self.bars(&legend(&inner, &names)?, categories, series)
            }
            Body::Lines { axis_label, series } => {
                let names: Vec<&str> = series.iter().map(|(name, _)| &**name).collect();
                self.lines(&legend(&inner, &names)?, axis_label, series)
            }
        }
    }

    /// Horizontal bars: long names stay readable, and the eye compares lengths on one base line.
    fn bars(
        &self,
        area: &Area<'_>,
        categories: &[String],
        series: &[(String, Vec<Spread>)],
    ) -> Result<(), String> {
        let group = series.len() as f64 + GAP as f64 / BAR as f64;
        let values = series.iter().flat_map(|(_, values)| values);
        let medians = values.map(|spread| spread.median).filter(|v| v.is_finite());
        // A line that a neighbour's interruption makes long is cut off, or it would be the drawing.
        let end = medians.fold(0.0, f64::max) * 1.04;
        let height = group * categories.len() as f64;
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .margin_right(70)
            .x_label_area_size(46)
            .y_label_area_size(name_width(categories))
            .build_cartesian_2d(0.0..end, height..0.0)
            .map_err(text)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .y_labels(0)
            .x_labels(8)
            .x_desc(self.value_label)
            .x_label_formatter(&|x| tick(*x))
            .light_line_style(WHITE)
            .bold_line_style(GRID)
            .axis_style(GRID)
            .label_style((FONT, 14).into_font().color(&INK))
            .draw()
            .map_err(text)?;
        let name = (FONT, 14).into_font().color(&INK).pos(Pos::new(HPos::Right, VPos::Center));
        for (index, category) in categories.iter().enumerate() {
            let middle = group * index as f64 + series.len() as f64 / 2.0;
            let at = EmptyElement::at((0.0, middle)) + Text::new(category.clone(), (-8, 0), &name);
            chart.draw_series([at]).map_err(text)?;
        }
        let number = (FONT, 12).into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
        for (order, (_, values)) in series.iter().enumerate() {
            let colour = PALETTE[order % PALETTE.len()];
            let shown = values.iter().enumerate().filter(|(_, spread)| spread.median.is_finite());
            let place = |index: usize| group * index as f64 + order as f64;
            let bars = shown.clone().map(|(index, spread)| {
                let corners = [(0.0, place(index) + 0.08), (spread.median, place(index) + 0.92)];
                Rectangle::new(corners, colour.filled())
            });
            chart.draw_series(bars).map_err(text)?;
            let whiskers = shown.clone().filter(|(_, spread)| spread.min < spread.p99);
            let whiskers = whiskers.map(|(index, spread)| {
                let height = place(index) + 0.5;
                PathElement::new([(spread.min, height), (spread.p99.min(end), height)], INK)
            });
            chart.draw_series(whiskers).map_err(text)?;
            let numbers = shown.map(|(index, spread)| {
                let behind = spread.p99.max(spread.median).min(end);
                EmptyElement::at((behind, place(index) + 0.5))
                    + Text::new(short(spread.median), (5, 0), &number)
            });
            chart.draw_series(numbers).map_err(text)?;
        }
        Ok(())
    }

    fn lines(
        &self,
        area: &Area<'_>,
        axis_label: &str,
        series: &[(String, Vec<(f64, f64)>)],
    ) -> Result<(), String> {
        let points = || series.iter().flat_map(|(_, points)| points);
        let left = points().map(|p| p.0).fold(f64::INFINITY, f64::min);
        let right = points().map(|p| p.0).fold(0.0, f64::max);
        let highest = points().map(|p| p.1).filter(|v| v.is_finite()).fold(0.0, f64::max);
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .margin_right(30)
            .x_label_area_size(50)
            .y_label_area_size(70)
            .build_cartesian_2d((left..right * 1.1).log_scale(), 0.0..highest * 1.15)
            .map_err(text)?;
        chart
            .configure_mesh()
            .x_desc(axis_label)
            .y_desc(self.value_label)
            .y_label_formatter(&|y| tick(*y))
            .x_label_formatter(&|x| engineering(*x))
            .light_line_style(WHITE)
            .bold_line_style(GRID)
            .axis_style(INK)
            .label_style((FONT, 14).into_font().color(&INK))
            .draw()
            .map_err(text)?;
        for (order, (_, points)) in series.iter().enumerate() {
            let colour = PALETTE[order % PALETTE.len()];
            let shown = points.iter().copied().filter(|point| point.1.is_finite());
            chart
                .draw_series(LineSeries::new(shown.clone(), colour.stroke_width(2)))
                .map_err(text)?;
            let dots = shown.map(|point| Circle::new(point, 4, colour.filled()));
            chart.draw_series(dots).map_err(text)?;
        }
        Ok(())
    }
}

/// Pixels of a bar, and between groups of bars.
const BAR: usize = 17;
const GAP: usize = 12;
/// Pixels of the legend's strip.
const LEGEND: i32 = 34;

/// Writes the legend into a strip under the title, where it hides no value; returns what is left.
/// One series needs none: the axis says what it is.
fn legend<'a>(area: &Area<'a>, names: &[&str]) -> Result<Area<'a>, String> {
    if names.len() < 2 {
        return Ok(area.clone());
    }
    let (strip, rest) = area.split_vertically(LEGEND);
    let style = (FONT, 14).into_font().color(&INK).pos(Pos::new(HPos::Left, VPos::Center));
    let width = |name: &str| i32::try_from(text_width(name)).unwrap_or(200) + 44;
    let total: i32 = names.iter().map(|name| width(name)).sum();
    let mut left = (i32::try_from(WIDTH).unwrap_or(0) - total) / 2;
    let middle = LEGEND / 2;
    for (order, name) in names.iter().enumerate() {
        let colour = PALETTE[order % PALETTE.len()];
        let swatch = [(left, middle - 6), (left + 14, middle + 6)];
        strip.draw(&Rectangle::new(swatch, colour.filled())).map_err(text)?;
        let at = (left + 20, middle);
        strip.draw(&Text::new((*name).to_owned(), at, &style)).map_err(text)?;
        left += width(name);
    }
    Ok(rest)
}

/// Pixels of a text of 14 pixels' height: plotters cannot measure a font that it does not embed.
fn text_width(text: &str) -> u32 {
    u32::try_from(text.len() * 15 / 2).unwrap_or(400)
}

/// Room for the longest name.
fn name_width(names: &[String]) -> u32 {
    let longest = names.iter().map(|name| text_width(name)).max().unwrap_or(0);
    (longest + 16).min(420)
}

/// A number on a bar, with three digits or so.
fn short(value: f64) -> String {
    if value >= 100.0 {
        format!("{value:.0}")
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else if value >= 1.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

/// A number on an axis, which are round ones.
fn tick(value: f64) -> String {
    format!("{}", (value * 1000.0).round() / 1000.0)
}

/// 1 k, 100 k, 1 M.
fn engineering(value: f64) -> String {
    if value >= 1e6 {
        format!("{} M", value / 1e6)
    } else if value >= 1e3 {
        format!("{} k", value / 1e3)
    } else {
        format!("{value}")
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_has_title_unit_legend_names_and_values() {
        let directory = std::env::temp_dir().join(format!("uvdso-chart-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let chart = Chart {
            file: "bars",
            title: "A title".into(),
            value_label: "nanoseconds per call",
            body: Body::Bars {
                categories: vec!["first".into(), "second".into()],
                series: vec![
                    ("ours".into(), vec![Spread { min: 11.0, median: 12.5, p99: 900.0 }; 2]),
                    ("host".into(), vec![Spread::exact(250.0), Spread::exact(f64::NAN)]),
                ],
            },
        };
        let path = chart.draw(&directory).unwrap();
        let svg = std::fs::read_to_string(path).unwrap();
        for part in ["A title", "nanoseconds per call", "first", "second", "ours", "host"] {
            assert!(svg.contains(part), "{part} is missing");
        }
        for number in ["12.5", "250"] {
            assert!(svg.contains(number), "{number} is missing");
        }
        assert!(!svg.contains("NaN"));

        let lines = Chart {
            file: "lines",
            body: Body::Lines {
                axis_label: "publications per second",
                series: vec![("1 reader".into(), vec![(100.0, 20.0), (1e6, 40.0)])],
            },
            ..chart
        };
        let svg = std::fs::read_to_string(lines.draw(&directory).unwrap()).unwrap();
        assert!(svg.contains("publications per second") && svg.contains("1 M"));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_chart_that_cannot_be_written_says_which() {
        let chart = Chart {
            file: "nowhere",
            title: String::new(),
            value_label: "",
            body: Body::Bars {
                categories: vec!["a".into()],
                series: vec![("b".into(), vec![Spread::exact(1.0)])],
            },
        };
        let error = chart.draw(Path::new("/proc/nothing")).unwrap_err();
        assert!(error.to_string().contains("nowhere.svg"), "{error}");
    }
}
