//! A configuration in words, for people who check theirs before a gateway gets it.

use std::fmt;
use std::rc::Rc;

use super::{Config, Mirrors, Target};

/// Says in words, a line each, which requests are mirrored where; in the order in which rules are
/// asked.
impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |f: &mut fmt::Formatter<'_>, who: &str, mirrors: &[Rc<Target>]| match mirrors {
            [] => writeln!(f, "{who}: not mirrored"),
            mirrors => mirrors.iter().try_for_each(|target| writeln!(f, "{who}: {target}")),
        };
        match &self.mirrors {
            Mirrors::Every(mirrors) => show(f, "every request", mirrors),
            Mirrors::ByRule(routes) => {
                for (host, fits, rule) in routes.iter() {
                    show(f, &format!("{host}{fits}"), rule)?;
                }
                writeln!(f, "any other request: not mirrored")
            }
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As many digits as make the shares of large denominators visible.
        let percent = format!("{:.10}", self.fraction.percent());
        let percent = percent.trim_end_matches('0').trim_end_matches('.');
        let Self { cluster, timeout, max_body_bytes, .. } = self;
        write!(f, "{percent} % to {cluster}, each within {timeout:?}, ")?;
        write!(f, "bodies of up to {max_body_bytes} bytes")
    }
}
