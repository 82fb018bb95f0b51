package admission

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"waybill.dev/waybill/internal/notify"
)

// usageTopic is where gateways report what they admitted.
var usageTopic = notify.Topic{Tenant: "all", ID: "usage"}

const (
	// reportEvery is how often a gateway reports.
	reportEvery = 50 * time.Millisecond
	// maxReported limits the buckets of one report. The rest follows in the next one.
	maxReported = 1000
)

// usageReport is what one gateway admitted.
type usageReport struct {
	From string `json:"from"`
	Uses []use  `json:"uses"`
}

type use struct {
	Tenant  string `json:"tenant,omitempty"`
	Subject string `json:"subject,omitempty"`
	Rule    string `json:"rule"`
	Count   int    `json:"count"`
}

// Share reports usage to the other gateways, and applies their reports, until ctx ends.
func (r *Rates) Share(ctx context.Context, hub *notify.Hub) error {
	own := uuid.NewString()
	in := hub.Listen(usageTopic)
	defer in.Close()
	r.mu.Lock()
	r.used = map[bucketKey]int{}
	r.mu.Unlock()
	t := time.NewTicker(reportEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case doc := <-in.C():
			var report usageReport
			if json.Unmarshal(doc, &report) == nil && report.From != own {
				r.apply(report.Uses)
			}
		case <-t.C:
			if uses := r.takeUsed(); len(uses) > 0 {
				doc, err := json.Marshal(usageReport{own, uses})
				if err == nil {
					_ = hub.Publish(usageTopic, doc) // without NATS each gateway limits alone
				}
			}
		}
	}
}

// takeUsed returns what was admitted since the last call.
func (r *Rates) takeUsed() []use {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []use
	for key, n := range r.used {
		if len(out) == maxReported {
			break
		}
		out = append(out, use{key.tenant, key.subject, key.rule.Name(), n})
		delete(r.used, key)
	}
	return out
}

// apply takes what others admitted from the buckets. A limit that this gateway does not have is
// ignored: gateways may read a changed file at different times.
func (r *Rates) apply(uses []use) {
	cfg, now := r.cfg.Load(), r.clock()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, u := range uses {
		for _, rule := range cfg.of(u.Tenant) {
			if rule.Name() != u.Rule {
				continue
			}
			b := r.bucket(bucketKey{u.Tenant, u.Subject, rule})
			for n := u.Count; n > 0; n -= rule.Burst {
				b.ReserveN(now, min(n, rule.Burst))
			}
		}
	}
}
