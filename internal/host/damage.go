package host

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"waybill.dev/waybill/internal/host/probe"
	"waybill.dev/waybill/internal/natsd"
)

// watchLosses checks every second whether the run log has all records, until ctx ends.
func (h *Host) watchLosses(ctx context.Context) error {
	t := time.NewTicker(probe.CheckEvery)
	defer t.Stop()
	var logged uint64
	for {
		if h.stores.Log.Check(ctx) == nil {
			_ = h.events.Compare(ctx) // the next check reports a log that does not answer now
		}
		if n := h.lost(); n > logged {
			logged = n
			h.log.Error(lostMessage, "records", n, "positions", h.stores.Log.Missing(ctx))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// lostMessage is the message of lost records in the host's log.
const lostMessage = "the run log has lost records"

// lost counts the records that the run log has lost, between other records and at its end.
func (h *Host) lost() uint64 { return h.stores.Log.Lost() + h.events.Lost() }

// warnings returns problems of a serving host that an operator must solve.
func (h *Host) warnings() []string {
	var out []string
	if n := h.lost(); n > 0 {
		out = append(out, fmt.Sprintf("%s: %d", lostMessage, n))
	}
	unrepaired := 0
	for _, d := range h.nats.Damage() {
		if d.Outcome != natsd.Repaired {
			unrepaired++
		}
	}
	if unrepaired > 0 {
		out = append(out, fmt.Sprintf("damage of the log's files that could not be repaired: %d", unrepaired))
	}
	if h.tiers.lacking {
		out = append(out, lackingMessage+"; the host's log has the remedy")
	}
	if f := h.tiers.faults; f != nil {
		out = append(out, f.Warnings()...)
	}
	if s := h.tiers.sealer; s != nil {
		out = append(out, s.Warnings()...)
	}
	return append(out, h.auditWarnings()...)
}

// auditWarnings names no tenant, because the answer is public.
func (c *core) auditWarnings() []string {
	if c.audit == nil {
		return nil
	}
	if n := len(c.audit.Broken()); n > 0 {
		return []string{fmt.Sprintf("audit logs that are damaged: %d", n)}
	}
	return nil
}

// damagedRecords is the metric of damaged files.
type damagedRecords struct {
	desc *prometheus.Desc
	nats *natsd.Server
}

func newDamagedRecords(nats *natsd.Server) *damagedRecords {
	return &damagedRecords{nats: nats, desc: prometheus.NewDesc("waybill_log_damaged_records",
		"Damaged records and files of the embedded log that starts have found, until the folder nats/damaged is deleted.", []string{"outcome"}, nil)}
}

// Describe is for the registry.
func (c *damagedRecords) Describe(to chan<- *prometheus.Desc) { to <- c.desc }

// Collect is for the registry.
func (c *damagedRecords) Collect(to chan<- prometheus.Metric) {
	n := map[natsd.Outcome]int{natsd.Repaired: 0, natsd.Kept: 0, natsd.Lost: 0}
	for _, d := range c.nats.Damage() {
		n[d.Outcome]++
	}
	for outcome, found := range n {
		to <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(found), string(outcome))
	}
}

// brokenAudits is the metric of damaged audit logs.
func (c *core) brokenAudits() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "waybill", Subsystem: "audit", Name: "damaged_tenants",
		Help: "Tenants whose audit log is damaged and gets no checkpoints.",
	}, func() float64 {
		if c.audit == nil {
			return 0
		}
		return float64(len(c.audit.Broken()))
	})
}
