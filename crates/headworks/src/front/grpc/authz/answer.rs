//! Answers of external authorization. Pure.

use envoy_types::pb::envoy::config::core::v3::{HeaderValue, HeaderValueOption};
use envoy_types::pb::envoy::service::auth::v3::check_response::HttpResponse;
use envoy_types::pb::envoy::service::auth::v3::{CheckResponse, DeniedHttpResponse, OkHttpResponse};
use envoy_types::pb::envoy::r#type::v3::{HttpStatus, StatusCode};
use envoy_types::pb::google::rpc;
use headworks_agent::told::Told;
use tonic::Code;

/// The answer, with what is told of the limit that decided. `draw`, from 0 up to 1, spreads the moments at which refused clients
/// come back.
pub(super) fn of(allowed: bool, told: Option<&Told>, draw: f64) -> CheckResponse {
    let told = told.into_iter().flat_map(|told| told.headers(draw));
    let headers: Vec<HeaderValueOption> = told.map(|(key, value)| header(key, &value.to_string())).collect();
    let (code, answer) = if allowed {
        let ok = OkHttpResponse { response_headers_to_add: headers, ..OkHttpResponse::default() };
        (Code::Ok, HttpResponse::OkResponse(ok))
    } else {
        let status = Some(HttpStatus { code: StatusCode::TooManyRequests.into() });
        let denied = DeniedHttpResponse { status, headers, body: String::new() };
        (Code::ResourceExhausted, HttpResponse::DeniedResponse(denied))
    };
    let status = rpc::Status { code: code.into(), ..rpc::Status::default() };
    CheckResponse { status: Some(status), dynamic_metadata: None, http_response: Some(answer) }
}

fn header(key: &str, value: &str) -> HeaderValueOption {
    let header = HeaderValue { key: key.to_owned(), value: value.to_owned(), raw_value: Vec::new() };
    HeaderValueOption { header: Some(header), ..HeaderValueOption::default() }
}
