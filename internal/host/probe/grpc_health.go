package probe

import (
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// HealthOf is how gRPC's health service tells that something is lacking; nil: nothing is.
func HealthOf(lacking error) healthv1.HealthCheckResponse_ServingStatus {
	if lacking != nil {
		return healthv1.HealthCheckResponse_NOT_SERVING
	}
	return healthv1.HealthCheckResponse_SERVING
}

// The names of what gRPC's health service tells of a process: whether it has all that it needs,
// and whether it has what it needs to read, which is its own stores and no other service.
const (
	HealthOfAll   = ""
	HealthOfReads = "reads"
)
