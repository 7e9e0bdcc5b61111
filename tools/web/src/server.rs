//! The thread that serves: connections, requests, and what goes to each.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::LocalSet;

use crate::Message;
use crate::assets::ASSETS;
use crate::body::PageBody;
use crate::state::State;
use crate::token::Token;

/// Connections at the same time. A browser takes one to follow and some more for a moment.
pub(crate) const CONNECTIONS_MAX: usize = 128;
/// Bytes of an order at most.
const ORDER_BYTES_MAX: usize = 64 << 10;
/// How long a connection may take to ask for something.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// How often browsers hear something at least.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long browsers may take to hear that the program has ended.
const END_GRACE: Duration = Duration::from_millis(500);
/// After a connection that could not be accepted, such as for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// No script, style, picture or connection but those of this server, and no page around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

type Shared = Rc<RefCell<State>>;

/// Serves until the other side of the messages is gone. Gives how many rounds browsers have lost.
pub(crate) async fn serve(
    listener: TcpListener,
    token: Token,
    state: State,
    mut messages: mpsc::Receiver<Message>,
) -> u64 {
    let state = Rc::new(RefCell::new(state));
    let token = Rc::new(token);
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let (close, closing) = watch::channel(false);
    let tasks = LocalSet::new();
    let everything = async {
        let mut turn = tokio::time::interval(KEEP_ALIVE);
        loop {
            // Each branch is one that may be dropped while it waits.
            let happened = Happening::next(&listener, &mut messages, &mut turn).await;
            match happened {
                Happening::Message(Some(message)) => take(&state, message),
                Happening::Message(None) => break,
                Happening::Turn => state.borrow_mut().keep_alive(),
                Happening::Connection(Ok(stream)) => {
                    // Without a free place it is closed.
                    if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
                        tokio::task::spawn_local(connection(
                            stream,
                            (place, closing.clone()),
                            Rc::clone(&token),
                            Rc::clone(&state),
                        ));
                    }
                }
                Happening::Connection(Err(_)) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
        drop(listener);
        // Browsers that follow hear of the end; one that does not read is not waited for.
        let _ = close.send(true);
        let all = u32::try_from(CONNECTIONS_MAX).unwrap_or(u32::MAX);
        let _ = tokio::time::timeout(END_GRACE, places.acquire_many(all)).await;
    };
    tasks.run_until(everything).await;
    state.borrow().rounds_lost()
}

fn take(state: &Shared, message: Message) {
    match message {
        Message::Round { record, published_ms } => {
            state.borrow_mut().publish(*record, published_ms);
        }
        Message::End(how) => state.borrow_mut().end(how),
    }
}

/// What the thread waits for.
enum Happening {
    Message(Option<Message>),
    Connection(std::io::Result<TcpStream>),
    Turn,
}

impl Happening {
    async fn next(
        listener: &TcpListener,
        messages: &mut mpsc::Receiver<Message>,
        turn: &mut tokio::time::Interval,
    ) -> Self {
        poll_fn(|context| {
            use std::task::Poll::{Pending, Ready};
            if let Ready(message) = messages.poll_recv(context) {
                return Ready(Self::Message(message));
            }
            if let Ready(accepted) = listener.poll_accept(context) {
                return Ready(Self::Connection(accepted.map(|(stream, _)| stream)));
            }
            if turn.poll_tick(context).is_ready() {
                return Ready(Self::Turn);
            }
            Pending
        })
        .await
    }
}

/// Serves one connection to its end, and gives its place back. When the server closes, an answer
/// that is on its way is still sent.
async fn connection(
    stream: TcpStream,
    (place, mut closing): (OwnedSemaphorePermit, watch::Receiver<bool>),
    token: Rc<Token>,
    state: Shared,
) {
    // A round is sent at once.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| {
        let (token, state) = (Rc::clone(&token), Rc::clone(&state));
        async move { Ok::<_, Infallible>(answer(request, &token, &state).await) }
    });
    let mut served = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIMEOUT)
            .serve_connection(TokioIo::new(stream), service)
    );
    let mut closing = pin!(closing.wait_for(|is_closing| *is_closing));
    let mut is_closing = false;
    let served = poll_fn(|context| {
        if !is_closing && closing.as_mut().poll(context).is_ready() {
            is_closing = true;
            served.as_mut().graceful_shutdown();
        }
        served.as_mut().poll(context)
    });
    // What a browser does wrong is its own matter.
    let _ = served.await;
    drop(place);
}

async fn answer(request: Request<Incoming>, token: &Token, state: &Shared) -> Response<PageBody> {
    let path = request.uri().path().to_owned();
    let (word, name) = path[1..].split_once('/').unwrap_or((&path[1..], ""));
    if !token.is(word) {
        return said(
            StatusCode::FORBIDDEN,
            "The token in this address is wrong, or of a run that has ended. Open the address that \
             sapwood has printed, to its last character.\n",
        );
    }
    let method = request.method().clone();
    match (method, name) {
        (Method::GET, "api/records") => {
            let query = request.uri().query().unwrap_or("");
            let after = query.strip_prefix("after=").and_then(|number| number.parse().ok());
            let pieces = state.borrow().records(after).collect();
            with(StatusCode::OK, "application/json", PageBody::Pieces(pieces))
        }
        (Method::GET, "api/stream") => {
            let events = PageBody::Events(state.borrow_mut().follow());
            with(StatusCode::OK, "text/event-stream", events)
        }
        (Method::POST, "api/control") => control(request, state).await,
        (_, "api/records" | "api/stream" | "api/control") => {
            said(StatusCode::METHOD_NOT_ALLOWED, "This address does not take this method.\n")
        }
        // The address without the stroke at its end: what the page asks for is below it.
        (Method::GET, "") if !path.ends_with('/') => {
            let mut moved = said(StatusCode::PERMANENT_REDIRECT, "");
            if let Ok(place) = HeaderValue::try_from(format!("{path}/")) {
                moved.headers_mut().insert(header::LOCATION, place);
            }
            moved
        }
        (Method::GET, name) => match ASSETS.iter().find(|asset| asset.name == name) {
            Some(asset) => {
                let content = PageBody::of(Bytes::from_static(asset.content));
                with(StatusCode::OK, asset.content_type, content)
            }
            None => said(StatusCode::NOT_FOUND, "There is no page of this name.\n"),
        },
        _ => said(StatusCode::METHOD_NOT_ALLOWED, "This address does not take this method.\n"),
    }
}

/// An order is JSON, and says so: a page of another origin cannot send that unasked.
async fn control(request: Request<Incoming>, state: &Shared) -> Response<PageBody> {
    let kind = request.headers().get(header::CONTENT_TYPE);
    if kind.is_none_or(|kind| kind.as_bytes() != b"application/json") {
        return said(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "An order has to be of the type application/json.\n",
        );
    }
    let body = Limited::new(request.into_body(), ORDER_BYTES_MAX);
    let Ok(Ok(body)) = tokio::time::timeout(HEADER_TIMEOUT, body.collect()).await else {
        return said(StatusCode::PAYLOAD_TOO_LARGE, "An order has at most 65536 bytes.\n");
    };
    match serde_json::from_slice(&body.to_bytes()) {
        Err(error) => said(StatusCode::BAD_REQUEST, format!("The order is not JSON: {error}\n")),
        Ok(order) => match state.borrow().control(order) {
            Ok(()) => said(StatusCode::ACCEPTED, "The order was accepted.\n"),
            Err(why) => said(StatusCode::UNPROCESSABLE_ENTITY, format!("{why}\n")),
        },
    }
}

fn said(status: StatusCode, text: impl Into<Bytes>) -> Response<PageBody> {
    with(status, "text/plain; charset=utf-8", PageBody::of(text))
}

fn with(status: StatusCode, kind: &'static str, body: PageBody) -> Response<PageBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers: [(HeaderName, &'static str); 6] = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
