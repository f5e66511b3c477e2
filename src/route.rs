//! Which rule a request belongs to, as the Gateway API says.
//!
//! First the hostname: the routes of the most specific one that matches are the candidates, and no
//! others. Among the matches of all their rules the most specific one wins; the candidates are kept
//! in that order, so that the first that matches is it.

mod hostname;
mod matching;
mod request;

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::head::Head;
pub use hostname::Hostname;
pub use matching::{Condition, Match, PathMatch, Pattern, Value};
use request::Request;

/// A route: its rules hold for these hostnames.
pub struct Route<T> {
    /// None for all.
    pub hostnames: Vec<Hostname>,
    pub rules: Vec<Rule<T>>,
    pub seniority: Seniority,
}

/// A rule: it holds for a request that one of the matches fits.
pub struct Rule<T> {
    pub matches: Vec<Match>,
    /// What choosing this rule means.
    pub outcome: T,
}

/// Which of two routes goes first where their matches are equally specific: the older one, then the
/// one whose name comes first. A route that does not say goes last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seniority {
    /// `metadata.creationTimestamp`, which Kubernetes writes in UTC and to the second.
    pub created: Option<String>,
    /// `namespace/name`.
    pub name: Option<String>,
}

/// All rules of all routes, by hostname.
pub struct Routes<T> {
    exact: BTreeMap<String, Vec<Rc<Candidate<T>>>>,
    /// By what follows the asterisk, from the dot on.
    wildcard: BTreeMap<String, Vec<Rc<Candidate<T>>>>,
    any: Vec<Rc<Candidate<T>>>,
}

/// One match of one rule.
struct Candidate<T> {
    fits: Match,
    seniority: Rc<Seniority>,
    outcome: Rc<T>,
}

impl<T> Routes<T> {
    pub fn new(routes: Vec<Route<T>>) -> Self {
        let mut all = Self { exact: BTreeMap::new(), wildcard: BTreeMap::new(), any: Vec::new() };
        for Route { hostnames, rules, seniority } in routes {
            let seniority = Rc::new(seniority);
            for Rule { matches, outcome } in rules {
                let outcome = Rc::new(outcome);
                for fits in matches {
                    let (seniority, outcome) = (Rc::clone(&seniority), Rc::clone(&outcome));
                    all.add(&hostnames, Rc::new(Candidate { fits, seniority, outcome }));
                }
            }
        }
        all
    }

    fn add(&mut self, hostnames: &[Hostname], candidate: Rc<Candidate<T>>) {
        for hostname in hostnames {
            let group = match hostname {
                Hostname::Exact(name) => self.exact.entry(name.clone()),
                Hostname::Wildcard(suffix) => self.wildcard.entry(suffix.clone()),
            };
            candidate.insert_into(group.or_default());
        }
        if hostnames.is_empty() {
            candidate.insert_into(&mut self.any);
        }
    }

    /// Hostname, match and outcome of every rule, by hostname and in the order in which they are
    /// asked. One that holds for several hostnames comes several times.
    pub fn iter(&self) -> impl Iterator<Item = (String, &Match, &T)> {
        let exact = self.exact.iter().map(|(name, group)| (name.clone(), group));
        let wildcard = self.wildcard.iter().map(|(suffix, group)| (format!("*{suffix}"), group));
        let groups = exact.chain(wildcard).chain([("*".to_owned(), &self.any)]);
        groups.flat_map(|(host, group)| {
            group.iter().map(move |it| (host.clone(), &it.fits, it.outcome.as_ref()))
        })
    }

    /// What choosing each rule means, once or several times.
    pub fn outcomes(&self) -> impl Iterator<Item = &T> {
        let groups = self.exact.values().chain(self.wildcard.values()).chain([&self.any]);
        groups.flatten().map(|candidate| candidate.outcome.as_ref())
    }

    /// What the rule that this request belongs to means, if it belongs to one.
    pub fn choose(&self, head: &Head) -> Option<&T> {
        let request = Request::new(head)?;
        let candidates = self.candidates(&request.host);
        let chosen = candidates.iter().find(|candidate| candidate.fits.accepts(&request))?;
        Some(&chosen.outcome)
    }

    /// The candidates of the most specific hostname that matches.
    fn candidates(&self, host: &str) -> &[Rc<Candidate<T>>] {
        let exact = self.exact.get(host);
        let wildcard = || {
            let mut suffixes = host.match_indices('.').filter_map(|(dot, _)| host.get(dot..));
            suffixes.find_map(|suffix| self.wildcard.get(suffix))
        };
        exact.or_else(wildcard).unwrap_or(&self.any)
    }
}

impl<T> Candidate<T> {
    /// Takes its place in a group: behind those that are asked before it, and of equals behind those
    /// that came before it in the list.
    fn insert_into(self: &Rc<Self>, group: &mut Vec<Rc<Self>>) {
        let place = group.partition_point(|other| other.order(self) != Ordering::Greater);
        group.insert(place, Rc::clone(self));
    }

    /// Less if this one is asked before the other.
    fn order(&self, other: &Self) -> Ordering {
        let rank = |candidate: &Self| Reverse(candidate.fits.rank());
        rank(self).cmp(&rank(other)).then_with(|| self.seniority.cmp(&other.seniority))
    }
}

impl Ord for Seniority {
    fn cmp(&self, other: &Self) -> Ordering {
        fn known_first(a: &Option<String>, b: &Option<String>) -> Ordering {
            a.is_none().cmp(&b.is_none()).then_with(|| a.cmp(b))
        }
        known_first(&self.created, &other.created)
            .then_with(|| known_first(&self.name, &other.name))
    }
}

impl PartialOrd for Seniority {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests;
