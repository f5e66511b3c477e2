//! Hostnames that routes hold for, and the one that a request names.

/// A hostname, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hostname {
    Exact(String),
    /// `*.example.com` as `.example.com`: any name that ends so and is longer.
    Wildcard(String),
}

impl Hostname {
    /// `None` unless the text is a name of labels, of which the first may be an asterisk.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        let suffix = text.strip_prefix('*').filter(|suffix| suffix.starts_with('.'));
        let labels = suffix.map_or(text.as_str(), |suffix| suffix.get(1..).unwrap_or_default());
        let is_label = |label: &str| {
            let inner = |c: char| c.is_ascii_alphanumeric() || c == '-';
            !label.is_empty()
                && label.chars().all(inner)
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        if text.len() > 253 || !labels.split('.').all(is_label) {
            return None;
        }
        Some(suffix.map_or(Self::Exact(text.clone()), |suffix| Self::Wildcard(suffix.to_owned())))
    }
}

/// The host that an authority names, in lower case and without its port.
pub fn host(authority: &[u8]) -> String {
    let authority = String::from_utf8_lossy(authority);
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => &authority,
    };
    host.to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostnames_are_those_of_the_gateway_api() {
        let exact = |name: &str| Some(Hostname::Exact(name.to_owned()));
        for (text, expected) in [
            ("example.com", exact("example.com")),
            ("EXAMPLE.com", exact("example.com")),
            ("a-1.b", exact("a-1.b")),
            ("localhost", exact("localhost")),
            ("*.example.com", Some(Hostname::Wildcard(".example.com".to_owned()))),
            ("*.com", Some(Hostname::Wildcard(".com".to_owned()))),
            ("*", None),
            ("*.", None),
            ("", None),
            ("a..b", None),
            ("a.*.b", None),
            ("*a.b", None),
            ("a.b.", None),
            ("-a.b", None),
            ("a_b.c", None),
            ("a.b:80", None),
        ] {
            assert_eq!(Hostname::parse(text), expected, "{text}");
        }
        assert_eq!(Hostname::parse(&"a".repeat(254)), None);
    }

    #[test]
    fn a_host_has_no_port_and_no_capitals() {
        for (authority, expected) in [
            ("example.com", "example.com"),
            ("Example.COM:8080", "example.com"),
            ("[::1]:80", "[::1]"),
            ("[::1]", "[::1]"),
            ("example.com:", "example.com"),
            ("", ""),
        ] {
            assert_eq!(host(authority.as_bytes()), expected, "{authority}");
        }
    }
}
