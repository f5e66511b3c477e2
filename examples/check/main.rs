//! `make check CONFIG=file`: what a configuration mirrors, in words, or what is wrong with it.
//!
//! Read by the very code of the filter, wherever in the file it stands (see [`find`]).

mod find;

use std::io::{Read, Write};
use std::process::ExitCode;

use find::Found;
use request_mirror::config::Config;

const USAGE: &str = "usage: make check CONFIG=FILE (- for standard input)";

/// Something is wrong with the configuration; or there is none to read.
const WRONG: u8 = 1;
const UNREADABLE: u8 = 2;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), None) = (arguments.next(), arguments.next()) else {
        return fail(UNREADABLE, USAGE);
    };
    let text = match read(&file) {
        Ok(text) => text,
        Err(why) => return fail(UNREADABLE, &format!("cannot read {file}: {why}")),
    };
    match find::find(&text) {
        Err(why) => fail(WRONG, &format!("{file} is {why}")),
        Ok(found) if found.is_empty() => {
            fail(UNREADABLE, &format!("{file} holds {}", find::NOTHING))
        }
        Ok(found) => match found.iter().filter(|found| !is_good(found)).count() {
            0 => ExitCode::SUCCESS,
            _ => ExitCode::from(WRONG),
        },
    }
}

fn read(file: &str) -> std::io::Result<String> {
    if file != "-" {
        return std::fs::read_to_string(file);
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map(|_| text)
}

/// Says what this configuration mirrors or what is wrong with it, and returns whether it is good.
fn is_good(found: &Found) -> bool {
    match Config::parse(found.written.as_bytes()) {
        Ok(config) => {
            if !found.place.is_empty() {
                say(&format!("{}:\n", found.place));
            }
            say(&config.to_string());
            for warning in &config.warnings {
                eprintln!("warning: {}", found.locate(warning));
            }
            true
        }
        Err(errors) => {
            for error in errors {
                eprintln!("error: {}", found.locate(&error.to_string()));
            }
            false
        }
    }
}

/// To whoever reads it: `head` may have gone.
fn say(words: &str) {
    let _ = std::io::stdout().write_all(words.as_bytes());
}

fn fail(code: u8, why: &str) -> ExitCode {
    eprintln!("{why}");
    ExitCode::from(code)
}
