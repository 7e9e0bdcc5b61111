//! The server as a browser sees it, over real sockets: which are served, what is kept, which are
//! waited for.

#[allow(dead_code, reason = "the example uses more of it")]
mod synthetic;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use sapwood_report::RoundRecord;
use sapwood_web::{Page, Program, listen_address};
use serde_json::Value;

use synthetic::Synthetic;

/// How long a test waits for anything.
const DEADLINE: Duration = Duration::from_secs(30);

fn page() -> Page {
    Page::open(Program::default(), None, None).expect("a free port")
}

/// Host with port, and path of an address.
fn parts(address: &str) -> (&str, &str) {
    let rest = address.strip_prefix("http://").expect("an address of a page");
    rest.split_at(rest.find('/').expect("a path"))
}

fn connected(host: &str) -> TcpStream {
    let stream = TcpStream::connect(host).expect("a server that listens");
    stream.set_read_timeout(Some(DEADLINE)).expect("a socket");
    stream
}

/// What a request gets, with its head.
fn asked(host: &str, request: &str) -> String {
    let mut stream = connected(host);
    stream.write_all(request.as_bytes()).expect("a server that reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer within the deadline");
    String::from_utf8(answer).expect("text")
}

fn get(host: &str, path: &str) -> String {
    asked(host, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
}

fn post(host: &str, path: &str, kind: &str, body: &str) -> String {
    let length = body.len();
    asked(
        host,
        &format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: {kind}\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        ),
    )
}

/// The records as they are served, once a number of rounds has been seen.
fn records(page: &Page, rounds: u64) -> Value {
    records_after(page, rounds, "")
}

/// Waits until a number of rounds has been seen.
fn seen(page: &Page, rounds: u64) {
    records_after(page, rounds, "?after=1000000");
}

fn records_after(page: &Page, rounds: u64, query: &str) -> Value {
    let (host, path) = parts(page.address());
    let started = Instant::now();
    loop {
        let answer = get(host, &format!("{path}api/records{query}"));
        let (_, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let records: Value = serde_json::from_str(body).expect("records are JSON");
        if records["about"]["rounds_seen"] == rounds {
            return records;
        }
        assert!(started.elapsed() < DEADLINE, "waited for {rounds} rounds: {}", records["about"]);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn only_who_knows_the_token_is_served_and_by_a_strict_policy() {
    let page = page();
    let (host, path) = parts(page.address());
    let right = get(host, path);
    assert!(right.starts_with("HTTP/1.1 200"), "{right}");
    let head = right.to_lowercase();
    assert!(head.contains("content-security-policy: default-src 'none'; script-src 'self'"));
    assert!(head.contains("referrer-policy: no-referrer") && head.contains("no-store"));
    assert!(!head.contains("unsafe-inline") && !head.contains("unsafe-eval"));
    let wrong = path.replace(|letter: char| letter.is_ascii_hexdigit(), "0");
    for path in ["/", "//", "/api/records", &wrong, &format!("{wrong}api/stream"), &path[..20]] {
        let answer = get(host, path);
        assert!(answer.starts_with("HTTP/1.1 403"), "{path}: {answer}");
        assert!(answer.contains("The token in this address is wrong"), "{answer}");
        assert!(!answer.contains("<html"), "{answer}");
    }
    assert!(get(host, path.trim_end_matches('/')).contains("308 "), "it leads to the page");
    assert!(get(host, &format!("{path}../../etc/passwd")).starts_with("HTTP/1.1 404"));
}

#[test]
fn rounds_and_iterations_of_the_same_number_are_both_kept() {
    let mut page = page();
    let program = Synthetic::of(2);
    // More iterations than records are kept, among them a few rounds.
    let (rounds, iterations) = (3, 3000);
    for number in 0..iterations {
        let mut record = program.round(number);
        record.tree.clear();
        record.iteration = Some(number + 1);
        page.replay(record);
        if number % 1000 == 0 {
            page.replay(program.round(number / 1000));
        }
    }
    let told = records(&page, rounds);
    assert_eq!(told["about"]["iterations_seen"], iterations);
    let all = told["rounds"].as_array().expect("a list of rounds");
    let timed: Vec<_> = all.iter().filter(|one| one["record"]["iteration"].is_null()).collect();
    let numbers = timed.iter().map(|one| one["record"]["number"].as_u64());
    assert_eq!(numbers.collect::<Vec<_>>(), [Some(0), Some(1), Some(2)]);
    let kept = told["about"]["iterations_kept"].as_u64().expect("a number");
    assert_eq!((all.len() - timed.len()) as u64, kept);
    let sequences: std::collections::BTreeSet<_> =
        all.iter().map(|one| one["sequence"].as_u64().expect("a number")).collect();
    assert_eq!(sequences.len(), all.len(), "each has its own");
}

#[test]
fn a_browser_that_comes_late_gets_what_was_before() {
    let mut page = page();
    let program = Synthetic::of(8);
    for number in 0..5 {
        page.publish(program.round(number));
    }
    let told = records(&page, 5);
    let rounds = told["rounds"].as_array().expect("a list of rounds");
    assert_eq!(rounds.len(), 5);
    let last = RoundRecord::parse(&rounds[4]["record"].to_string()).expect("a record");
    assert_eq!((last.number, last.events.len()), (4, program.round(4).events.len()));
    let (host, path) = parts(page.address());
    let newer = get(host, &format!("{path}api/records?after=3"));
    assert!(newer.contains(r#""number":4,"#) && !newer.contains(r#""number":3,"#));
}

#[test]
fn a_million_event_names_are_bounded_and_told() {
    let mut page = page();
    let program = Synthetic { hostile_events: 1_000_000, ..Synthetic::of(8) };
    page.publish(program.round(0));
    let told = records(&page, 1);
    let round = &told["rounds"][0];
    assert_eq!(round["record"]["events"].as_array().map(Vec::len), Some(1000));
    assert_eq!(round["left_out"]["events"], 1_000_000 + 16 - 1000);
    // Those with most time are there, whatever they are called.
    assert_eq!(round["record"]["events"][0]["name"], "<script>window.hostile = 1</script>");
}

#[test]
fn a_hundred_thousand_ranks_need_no_more_room_than_a_round_may_have() {
    let mut page = page();
    page.publish(Synthetic::of(100_000).round(30));
    let told = records(&page, 1);
    let round = &told["rounds"][0];
    assert!(round.to_string().len() < 4 << 20, "{}", round.to_string().len());
    assert!(round["left_out"]["processes"].as_u64() > Some(10_000), "{}", round["left_out"]);
    assert_eq!(round["record"]["tree"][0]["role"], "front-end");
}

/// Reads events until one of a name is there.
fn until(stream: &mut TcpStream, text: &mut String, wanted: &str) {
    let mut bytes = [0; 65536];
    while !text.contains(wanted) {
        let count = stream.read(&mut bytes).unwrap_or_else(|error| panic!("{wanted}: {error}"));
        assert!(count > 0, "the stream ended before {wanted:?}");
        text.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
}

#[test]
fn a_browser_that_stops_reading_loses_rounds_and_holds_up_neither_the_monitor_nor_another_one() {
    let mut page = page();
    let program = Synthetic { hostile_events: 900, ..Synthetic::of(1000) };
    let (host, path) = parts(page.address());
    let (host, path) = (host.to_owned(), path.to_owned());
    let request = format!("GET {path}api/stream HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let mut stopped = connected(&host);
    stopped.write_all(request.as_bytes()).expect("a server that reads");
    until(&mut stopped, &mut String::new(), "event: about");
    let mut reading = connected(&host);
    reading.write_all(request.as_bytes()).expect("a server that reads");
    until(&mut reading, &mut String::new(), "event: about");
    let round = program.round(0);
    let mut text = String::new();
    // Far more than the sockets between us hold.
    for number in 0..200 {
        let mut next = round.clone();
        next.number = number;
        page.publish(next);
        text.clear();
        until(&mut reading, &mut text, &format!("\"number\":{number},"));
    }
    page.end("exit code 0");
    until(&mut reading, &mut text, "event: end\ndata: \"exit code 0\"");
    assert!(!text.contains("event: lost"));
    // A browser that reads on is told how many it has missed.
    let lost = page.close();
    assert!(lost > 100, "{lost} rounds lost");
}

#[test]
fn who_reads_slowly_is_told_how_many_rounds_it_has_lost() {
    let mut page = page();
    let program = Synthetic { hostile_events: 900, ..Synthetic::of(1000) };
    let (host, path) = parts(page.address());
    let (host, path) = (host.to_owned(), path.to_owned());
    let mut slow = connected(&host);
    let request = format!("GET {path}api/stream HTTP/1.1\r\nHost: {host}\r\n\r\n");
    slow.write_all(request.as_bytes()).expect("a server that reads");
    until(&mut slow, &mut String::new(), "event: about");
    let round = program.round(0);
    for number in 0..100 {
        let mut next = round.clone();
        next.number = number;
        page.publish(next);
        seen(&page, number + 1);
    }
    slow.set_nonblocking(false).expect("a socket");
    let mut text = String::new();
    // It reads again: what is published from now on reaches it, behind the number of the lost.
    let drained = Instant::now();
    let mut number = 100;
    while !text.contains("event: lost") {
        assert!(drained.elapsed() < DEADLINE, "no word of lost rounds");
        slow.set_read_timeout(Some(Duration::from_millis(200))).expect("a socket");
        let mut bytes = [0; 65536];
        while let Ok(count) = slow.read(&mut bytes)
            && count > 0
        {
            text.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        let mut next = round.clone();
        next.number = number;
        number += 1;
        page.publish(next);
    }
    let told = text.split("event: lost\ndata: ").nth(1).and_then(|rest| rest.lines().next());
    assert!(told.and_then(|count| count.parse::<u64>().ok()) > Some(0), "{told:?}");
}

#[test]
fn an_order_is_json_of_this_origin_and_is_answered() {
    let orders = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = std::sync::Arc::clone(&orders);
    let control = move |order: Value| {
        let is_wanted = order.get("interval_s").is_some();
        seen.lock().expect("no test fails in here").push(order);
        if is_wanted { Ok(()) } else { Err("there is no such setting".to_owned()) }
    };
    let page = Page::open(Program::default(), None, Some(Box::new(control))).expect("a free port");
    let (host, path) = parts(page.address());
    let path = format!("{path}api/control");
    let json = "application/json";
    assert!(post(host, &path, json, r#"{"interval_s":0.5}"#).starts_with("HTTP/1.1 202"));
    let refused = post(host, &path, json, r#"{"colour":"red"}"#);
    assert!(refused.starts_with("HTTP/1.1 422") && refused.contains("there is no such setting"));
    assert!(post(host, &path, json, "{").starts_with("HTTP/1.1 400"));
    assert!(post(host, &path, "text/plain", "{}").starts_with("HTTP/1.1 415"));
    assert!(post(host, &path, json, &"[".repeat(70_000)).starts_with("HTTP/1.1 413"));
    assert!(post(host, "/api/control", json, "{}").starts_with("HTTP/1.1 403"));
    assert!(get(host, &path).starts_with("HTTP/1.1 405"));
    assert_eq!(orders.lock().expect("no test fails in here").len(), 2);
}

#[test]
fn connections_that_say_nothing_do_not_keep_a_browser_out_for_ever() {
    let page = page();
    let (host, path) = parts(page.address());
    let silent: Vec<TcpStream> = (0..200).map(|_| connected(host)).collect();
    let started = Instant::now();
    loop {
        let mut stream = connected(host);
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let mut answer = Vec::new();
        let asked = stream.write_all(request.as_bytes());
        if asked.is_ok()
            && stream.read_to_end(&mut answer).is_ok()
            && answer.starts_with(b"HTTP/1.1 200")
        {
            break;
        }
        assert!(started.elapsed() < DEADLINE, "no place became free");
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(silent);
}

#[test]
fn a_port_that_is_taken_is_an_error() {
    let page = page();
    let (host, _) = parts(page.address());
    let taken = listen_address(host).expect("an address");
    assert!(Page::open(Program::default(), Some(taken), None).is_err());
}
