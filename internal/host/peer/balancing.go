package peer

import (
	"fmt"
	"strings"

	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/host/probe"
	"waybill.dev/waybill/internal/rpc/sticky"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
)

// readPolicy retries reads, for at most a tenth of the calls: an overloaded service must not get more
// load.
const readPolicy = `"retryThrottling":{"maxTokens":100,"tokenRatio":0.1},"methodConfig":[{"name":[%s],"retryPolicy":` +
	`{"maxAttempts":3,"initialBackoff":"0.05s","maxBackoff":"0.5s","backoffMultiplier":3,"retryableStatusCodes":["UNAVAILABLE"]}}]`

// serviceConfig spreads calls over the replicas whose health check of the given name succeeds.
func serviceConfig(balancer, health string, repeatable ...string) grpc.DialOption {
	names := make([]string, len(repeatable))
	for i, full := range repeatable {
		service, method, _ := strings.Cut(strings.TrimPrefix(full, "/"), "/")
		names[i] = fmt.Sprintf(`{"service":%q,"method":%q}`, service, method)
	}
	cfg := fmt.Sprintf(`{"loadBalancingConfig":[{%q:{}}],"healthCheckConfig":{"serviceName":%q}`, balancer, health)
	if len(names) > 0 {
		cfg += "," + fmt.Sprintf(readPolicy, strings.Join(names, ","))
	}
	return grpc.WithDefaultServiceConfig(cfg + "}")
}

// roundRobin is the name of gRPC's load balancer.
const roundRobin = "round_robin"

// ToRedactors are the options of connections to redactors. The secrets of a tenant are registered
// with one replica, so all callers must send the tenant's calls to that replica.
func ToRedactors() []grpc.DialOption {
	return []grpc.DialOption{
		serviceConfig(sticky.Policy, probe.HealthOfAll, redactorv1.Redactor_Redact_FullMethodName, redactorv1.Redactor_Register_FullMethodName),
		grpc.WithChainUnaryInterceptor(sticky.Unary(tenantOf)),
	}
}

// tenantOf is the key by which calls to redactors are routed.
func tenantOf(req any) string {
	if r, ok := req.(interface{ GetScope() *redactorv1.Scope }); ok {
		return r.GetScope().GetTenant()
	}
	return ""
}
