package peer

import (
	"fmt"
	"strings"

	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/host/probe"
	"waybill.dev/waybill/internal/rpc/sticky"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
)

// readPolicy retries what only reads, or may be repeated, with a budget: no more than a
// tenth of the calls, so that a service in trouble is not called all the more.
const readPolicy = `"retryThrottling":{"maxTokens":100,"tokenRatio":0.1},"methodConfig":[{"name":[%s],"retryPolicy":` +
	`{"maxAttempts":3,"initialBackoff":"0.05s","maxBackoff":"0.5s","backoffMultiplier":3,"retryableStatusCodes":["UNAVAILABLE"]}}]`

// serviceConfig spreads calls over the replicas that say they are healthy, by one of the names that
// they have for it.
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

const roundRobin = "round_robin"

// ToRedactors is how redactors are called. Secrets are registered with one of them: it
// has to be found again, by everybody.
func ToRedactors() []grpc.DialOption {
	return []grpc.DialOption{
		serviceConfig(sticky.Policy, probe.HealthOfAll, redactorv1.Redactor_Redact_FullMethodName, redactorv1.Redactor_Register_FullMethodName),
		grpc.WithChainUnaryInterceptor(sticky.Unary(tenantOf)),
	}
}

// tenantOf is the key of calls to the redactor: secrets are a tenant's, or of a run of
// one, and are looked for together.
func tenantOf(req any) string {
	if r, ok := req.(interface{ GetScope() *redactorv1.Scope }); ok {
		return r.GetScope().GetTenant()
	}
	return ""
}
