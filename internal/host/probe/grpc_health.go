package probe

import (
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// HealthOf returns the gRPC health status of a process; lacking is nil if it is ready.
func HealthOf(lacking error) healthv1.HealthCheckResponse_ServingStatus {
	if lacking != nil {
		return healthv1.HealthCheckResponse_NOT_SERVING
	}
	return healthv1.HealthCheckResponse_SERVING
}

// Names of the health checks of a process: whether it is ready, and whether it can serve reads, which
// need its own stores but no other service.
const (
	HealthOfAll   = ""
	HealthOfReads = "reads"
)
