//! Secrets on the command line. All users of a machine see the command lines of its processes, so these are
//! refused without being printed.

use anyhow::bail;

/// Names of values that are secrets, without `-` and `_`.
const NAMES: [&str; 13] = [
    "token",
    "accesstoken",
    "authtoken",
    "password",
    "passwd",
    "secret",
    "clientsecret",
    "apikey",
    "accesskey",
    "secretkey",
    "sig",
    "signature",
    "authorization",
];

/// From this length on, a part of an address with letters and digits is taken for a token.
const TOKEN_LENGTH: usize = 20;

/// Refuses an address that holds a secret. `instead` names the other ways to give it.
///
/// # Errors
/// The text holds a secret.
pub(crate) fn refuse(option: &str, text: &str, instead: &str) -> anyhow::Result<()> {
    match found(text) {
        Some(kind) => bail!(
            "{option}: found {kind} on the command line, which all users of this machine see; expected {instead}"
        ),
        None => Ok(()),
    }
}

/// Refuses a command that holds a secret.
///
/// # Errors
/// The command holds a secret.
pub(crate) fn refuse_in_command(option: &str, command: Option<&str>) -> anyhow::Result<()> {
    let instead = "a script that reads it from a file, or a variable ($NAME) of the environment";
    command.map_or(Ok(()), |command| refuse(option, command, instead))
}

/// The kind of secret that stands in an address or a command, if there is one. A variable (`$NAME`) is none.
fn found(text: &str) -> Option<&'static str> {
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || "'\"".contains(c)).filter(|w| !w.is_empty()).collect();
    if words.iter().any(|word| has_user(word)) {
        return Some("a password in an address");
    }
    let follows = |k: usize| words.get(k + 1).is_some_and(|next| is_literal(next));
    let is_flag = |word: &str| matches!(word, "-u" | "--user" | "--proxy-user");
    let is_scheme = |word: &str| word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic");
    for (k, word) in words.iter().enumerate() {
        let is_user = is_flag(word)
            && words
                .get(k + 1)
                .and_then(|next| next.split_once(':'))
                .is_some_and(|(_, word)| is_literal(word));
        let is_named = word.strip_suffix([':', '=']).or_else(|| word.strip_prefix("--")).is_some_and(is_name);
        // `Authorization: Bearer $TOKEN` has the scheme in the place of the value.
        let has_scheme = is_named && words.get(k + 1).is_some_and(|next| is_scheme(next));
        let is_value = is_named && follows(k + usize::from(has_scheme));
        if is_user || is_value || word.split(['?', '&', ';']).any(is_pair) {
            return Some("a password or a token");
        }
    }
    let is_address = |word: &&&str| word.contains("://");
    let has_token = |address: &&str| address.split(['/', '?', '&', '=', '#', '.', ':']).any(is_token);
    words.iter().filter(is_address).any(has_token).then_some("a token in an address")
}

/// Whether a text is a value and not the name of a variable, of a file or of an option.
fn is_literal(text: &str) -> bool {
    !text.is_empty() && !text.starts_with(['$', '@', '-', '<', '|', '>'])
}

/// Whether an address has a user or a password: `https://USER:PASSWORD@HOST`.
fn has_user(word: &str) -> bool {
    let authority =
        word.split_once("://").map(|(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or(rest));
    let user = authority.and_then(|authority| authority.rsplit_once('@')).map(|(user, _)| user);
    let Some(user) = user else { return false };
    is_literal(user.split_once(':').map_or(user, |(_, password)| password))
}

/// Whether a text is `NAME=VALUE` or `NAME:VALUE` of a secret.
fn is_pair(text: &str) -> bool {
    let pair = text.trim_start_matches('-').split_once(['=', ':']);
    pair.is_some_and(|(name, value)| is_name(name) && is_literal(value))
}

/// Whether a value of that name is a secret; also `X-Api-Key` and `SLACK_TOKEN`.
fn is_name(name: &str) -> bool {
    let parts: Vec<String> = name.split(['-', '_']).map(str::to_ascii_lowercase).collect();
    (0..parts.len()).any(|k| NAMES.contains(&parts[k..].concat().as_str()))
}

/// Whether a part of an address is long and random enough for a token.
fn is_token(part: &str) -> bool {
    let has = |is: fn(&u8) -> bool| part.bytes().any(|b| is(&b));
    part.len() >= TOKEN_LENGTH
        && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_%+~".contains(&b))
        && has(u8::is_ascii_alphabetic)
        && has(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_and_never_printed() {
        for secret in [
            "https://ops:hunter2@example.org/hook",
            "https://hunter2@example.org/hook",
            "https://example.org/hook?token=hunter2",
            "https://example.org/hook?a=1&api_key=hunter2",
            "https://example.org/hook?X-Signature=hunter2",
            "https://hooks.example.com/services/T0001/B0002/hunter2hunter2hunter2xyz",
            "https://example.com/api/webhooks/1234/hunter2-Abc_d3fghijklmnop",
            "curl -H 'Authorization: Bearer hunter2' https://example.org",
            "curl -H \"X-Api-Key: hunter2\" https://example.org",
            "curl -u ops:hunter2 https://example.org",
            "PASSWORD=hunter2 notify",
            "SLACK_TOKEN='hunter2' ./notify",
            "notify --password hunter2 ops",
            "notify --auth-token=hunter2",
        ] {
            let refused = refuse("--x", secret, "a file").unwrap_err().to_string();
            assert!(
                refused.starts_with("--x: found ") && !refused.contains("hunter2"),
                "{secret}: {refused}"
            );
        }
    }

    #[test]
    fn variables_files_and_plain_addresses_are_no_secrets() {
        for plain in [
            "https://example.org:8443/hooks/nightly?x=1",
            "http://[::1]:7/alerts",
            "mail -s \"$SLACKLINE_MESSAGE\" ops@example.org",
            "curl -H \"Authorization: Bearer $TOKEN\" https://example.org/hook",
            "curl -u \"ops:$PASSWORD\" https://example.org",
            "curl -u ops https://example.org",
            "curl \"https://$USER:$PASSWORD@example.org\"",
            "curl --netrc -d @- https://example.org/hook",
            "notify --token-file /run/secrets/notify",
            "TOKEN=$(cat /run/secrets/notify) notify",
            "echo basic report > received",
            "echo $SLACKLINE_ALERT >> /var/log/a-directory-with-a-long-name-2026",
        ] {
            assert_eq!(found(plain), None, "{plain}");
        }
    }
}
