//! `make demo` and `make run`: the mirror between a primary and a shadow, on a real Envoy.
//!
//! | module | idea |
//! |---|---|
//! | `traffic` | the requests: what each one is follows from its number |
//! | `drive` | starts everything, sends the traffic, gathers what happened |
//! | `verdict` | what must hold of what happened |
//! | `report` | what happened, for a person |
//! | `watch` | `make run`: each copy as it arrives |
//! | `screen` | the terminal |

mod drive;
mod report;
mod screen;
mod traffic;
mod verdict;
mod watch;

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use screen::Screen;

#[tokio::main]
async fn main() -> ExitCode {
    let screen = Screen::new();
    let mut arguments = std::env::args().skip(1);
    let ended = match (arguments.next().as_deref(), arguments.next()) {
        (None, None) => demo(&screen).await,
        (Some("run"), percent) => watch::run(&screen, percent.as_deref()).await.map(|()| true),
        _ => Err(anyhow!("usage: demo, or demo run [PERCENT]")),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            screen.clear();
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether everything held.
async fn demo(screen: &Screen) -> Result<bool> {
    let outcome = drive::drive(screen).await?;
    report::show(screen, &outcome);
    let broken = verdict::broken(&outcome);
    let held = broken.is_empty();
    if held {
        screen.held("Every count and every byte held.");
    } else {
        screen.broken(&broken);
    }
    Ok(held)
}
