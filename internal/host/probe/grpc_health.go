package probe

import (
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// HealthOf is the status of gRPC's health service for a process that lacks something; nil: it lacks
// nothing.
func HealthOf(lacking error) healthv1.HealthCheckResponse_ServingStatus {
	if lacking != nil {
		return healthv1.HealthCheckResponse_NOT_SERVING
	}
	return healthv1.HealthCheckResponse_SERVING
}

// Names of the health checks of a process: whether it has all that it needs, and whether it has
// what reads need, which is its own stores and no other service.
const (
	HealthOfAll   = ""
	HealthOfReads = "reads"
)
