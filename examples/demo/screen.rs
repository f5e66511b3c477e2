//! The terminal: headings, rows and a live line. Colour and movement only where someone looks on.

use std::cell::Cell;
use std::io::{IsTerminal, Write, stdout};

const BOLD: &str = "1";
const DIM: &str = "2";
const GREEN: &str = "32";
const RED: &str = "31";

/// Where rows begin, and where what they say does.
const INDENT: &str = "  ";
const COLUMN: usize = 26;

/// The cells of the progress bar.
const BAR: usize = 24;

pub struct Screen {
    /// Whether a line may be drawn over the one before.
    live: bool,
    colour: bool,
    /// How many quarters of the work have been told, where lines only add up.
    quarters: Cell<usize>,
}

impl Screen {
    pub fn new() -> Self {
        let dumb = std::env::var("TERM").is_ok_and(|terminal| terminal == "dumb");
        let live = stdout().is_terminal() && !dumb;
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { live, colour: live && wanted, quarters: Cell::new(0) }
    }

    /// The first line.
    pub fn title(&self, text: &str) {
        println!("{}", self.paint(BOLD, text));
    }

    /// A heading, and what stands above the columns.
    pub fn heading(&self, text: &str, columns: &str) {
        let gap = " ".repeat(COLUMN.saturating_sub(text.len()));
        let columns = self.paint(DIM, columns);
        println!("\n{}", format!("{}{gap}{columns}", self.paint(BOLD, text)).trim_end());
    }

    /// A line under a heading.
    pub fn row(&self, name: &str, text: &str) {
        let width = COLUMN - INDENT.len();
        println!("{INDENT}{name:<width$}{text}");
    }

    /// A remark.
    pub fn note(&self, text: &str) {
        println!("{}", self.paint(DIM, text));
    }

    /// How far the work has come: a bar, or a line for each quarter.
    pub fn progress(&self, done: usize, total: usize, text: &str) {
        if self.live {
            let full = BAR * done / total;
            let (full, rest) = ("#".repeat(full), ".".repeat(BAR - full));
            print!("\r\x1b[K  {}{}  {text}", self.paint(GREEN, &full), self.paint(DIM, &rest));
            let _ = stdout().flush(); // a terminal that is gone needs no progress
        } else if 4 * done / total > self.quarters.get() {
            self.quarters.set(4 * done / total);
            println!("  {text}");
        }
    }

    /// The work is done: the bar goes.
    pub fn clear(&self) {
        if self.live {
            print!("\r\x1b[K");
        }
    }

    /// The good end.
    pub fn held(&self, text: &str) {
        println!("\n{}", self.paint(GREEN, text));
    }

    /// The bad end: what did not hold.
    pub fn broken(&self, lines: &[String]) {
        println!();
        for line in lines {
            println!("{}", self.paint(RED, line));
        }
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// A number with its thousands apart.
pub fn count(number: impl TryInto<u64>) -> String {
    let digits =
        number.try_into().map_or_else(|_| "?".to_owned(), |number: u64| number.to_string());
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}
