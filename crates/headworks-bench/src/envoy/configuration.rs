//! Configurations of Envoy that differ in how they limit, and in nothing else.

/// How an Envoy limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Not at all.
    Bare,
    /// By the agent inside.
    Module,
    /// By a rate limit service that it asks.
    Asking,
}

/// Where things listen, all on this machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ports {
    pub(super) envoy: u16,
    pub(super) aggregator: u16,
    pub(super) service: u16,
}

impl Way {
    pub(super) const ALL: [Self; 3] = [Self::Bare, Self::Module, Self::Asking];

    /// What tables call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bare => "Envoy alone",
            Self::Module => "the module in it",
            Self::Asking => "asking a rate limit service",
        }
    }

    /// The filter that limits.
    fn filter(self, ports: Ports) -> String {
        match self {
            Self::Bare => String::new(),
            Self::Module => MODULE.replace("AGGREGATOR", &ports.aggregator.to_string()),
            Self::Asking => ASKING.to_owned(),
        }
    }

    /// Envoy's configuration. The service is Envoy's own fault filter, which answers 200: no other process has a part in it, and
    /// the filter that asks does so for routes to a cluster only.
    pub(super) fn configuration(self, ports: Ports) -> String {
        WHOLE
            .replace("FILTER", &self.filter(ports))
            .replace("LISTEN", &ports.envoy.to_string())
            .replace("SERVICE", &ports.service.to_string())
    }
}

const WHOLE: &str = r#"
static_resources:
  listeners:
    - name: front
      address: {socket_address: {address: 127.0.0.1, port_value: LISTEN}}
      filter_chains:
        - filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: front
                route_config:
                  virtual_hosts:
                    - name: all
                      domains: ["*"]
                      rate_limits:
                        - actions:
                            - generic_key: {descriptor_key: service, descriptor_value: checkout}
                            - request_headers: {header_name: x-caller, descriptor_key: caller}
                      routes: [{match: {prefix: /}, route: {cluster: service}}]
                http_filters:
FILTER
                  - name: envoy.filters.http.fault
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault
                      abort: {http_status: 200, percentage: {numerator: 100, denominator: HUNDRED}}
                  - name: envoy.filters.http.router
                    typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
  clusters:
    - name: service
      type: STATIC
      connect_timeout: 1s
      typed_extension_protocol_options:
        envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
          "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
          explicit_http_config: {http2_protocol_options: {}}
      load_assignment:
        cluster_name: service
        endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: SERVICE}}}}]}]
"#;

const MODULE: &str = r#"
                  - name: headworks
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilter
                      dynamic_module_config: {name: headworks_envoy, metrics_namespace: headworks}
                      filter_name: headworks
                      filter_config:
                        "@type": type.googleapis.com/google.protobuf.Struct
                        value:
                          id: module
                          zone: a
                          aggregators: ["http://127.0.0.1:AGGREGATOR"]
                          attributes:
                            - {name: service, from: {constant: checkout}}
                            - {name: caller, from: {header: x-caller}}
"#;

const ASKING: &str = r#"
                  - name: envoy.filters.http.ratelimit
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit
                      domain: edge
                      timeout: 1s
                      failure_mode_deny: true
                      rate_limit_service:
                        transport_api_version: V3
                        grpc_service: {envoy_grpc: {cluster_name: service}}
"#;
