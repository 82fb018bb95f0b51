package host

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"

	"waybill.dev/waybill/internal/share"
	"waybill.dev/waybill/services/gateway/rest"
)

// Callers limit what callers may hold of a host, whether they have a key or not.
type Callers struct {
	// Patience limits how slowly they may send and read.
	Patience rest.Patience
	// MaxBytes limits the bytes of requests and answers in memory; 0 derives it from the memory
	// that the process may use.
	MaxBytes int64
	// GRPCStreams limits the open streams of one gRPC connection.
	GRPCStreams uint32
}

func defaultCallers() Callers { return Callers{Patience: rest.DefaultPatience(), GRPCStreams: 250} }

// validate returns all errors, joined. maxBody is the value of the flag body.
func (o *Callers) validate(body string, maxBody int64) error {
	var errs []error
	p := o.Patience
	if p.Start <= 0 || p.Total < p.Start {
		errs = append(errs, fmt.Errorf("--transfer-start %s, --transfer-timeout %s: want a positive time, and a timeout that is no shorter", p.Start, p.Total))
	}
	if p.MinRate < 1 {
		errs = append(errs, fmt.Errorf("--min-transfer-rate %d: want at least 1 byte per second", p.MinRate))
	}
	if o.MaxBytes != 0 && o.MaxBytes < 2*maxBody {
		errs = append(errs, fmt.Errorf("--max-bytes-in-flight %d: want at least twice %s (%d), or 0", o.MaxBytes, body, 2*maxBody))
	}
	if o.GRPCStreams < 1 {
		errs = append(errs, errors.New("--max-grpc-streams 0: want at least 1"))
	}
	return errors.Join(errs...)
}

// bytesPart is the part of the process's memory that requests and answers may use, as a divisor. A
// body is copied several times on its way into the log and out of it.
const bytesPart = 48

// pool returns the pool of bytes that all parts of a process share. sole: there is one tenant.
func (o *Callers) pool(maxBody int64, sole bool) *share.Pool {
	limit := o.MaxBytes
	if limit == 0 {
		limit = max(memoryLimit()/bytesPart, 2*maxBody)
	}
	return share.New(limit, sole)
}

// memoryLimit returns the memory that the process may use: GOMEMLIMIT, the limit of its control
// group, or the machine's memory.
func memoryLimit() int64 {
	limit := debug.SetMemoryLimit(-1)
	for _, other := range []int64{groupMemory(), machineMemory()} {
		if other > 0 {
			limit = min(limit, other)
		}
	}
	if limit == math.MaxInt64 { // an unknown system
		limit = 1 << 30
	}
	return limit
}
