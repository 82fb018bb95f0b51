package webhook

import (
	"cmp"
	"maps"
	"slices"

	"waybill.dev/waybill/protocol/frame"
)

// FeedLimits limit the frames that a feeding process keeps in memory. A frame takes some 200 bytes,
// without its body.
type FeedLimits struct {
	// Frames is for all tenants, PerTenant for one. The frames of a tenant that has more are read
	// from the log again.
	Frames, PerTenant int
}

// backlog has the frames of a turn that are read and not offered yet, by tenant. It is not safe for
// concurrent use.
type backlog struct {
	limits FeedLimits
	// read is the position up to which the log is read.
	read uint64
	// held is the number of waiting frames of all tenants.
	held    int
	tenants map[string]*tenantFeed
}

// tenantFeed is a tenant's part of the backlog. An idle tenant has none.
type tenantFeed struct {
	// offered are the frames that are being offered, waiting those after them, in the order of the
	// log.
	offered, waiting []*frame.Frame
	// behind: frames after next are left out. They are read from the log when the others are offered.
	behind bool
	next   uint64
}

func newBacklog(l FeedLimits) backlog { return backlog{limits: l, tenants: map[string]*tenantFeed{}} }

// light is a frame without its body.
func light(fr *frame.Frame) *frame.Frame {
	return &frame.Frame{Run: fr.Run, Kind: fr.Kind, Types: fr.Types, Pos: fr.Pos}
}

// of returns a tenant's part. It reports whether the tenant was idle.
func (b *backlog) of(tenant string) (t *tenantFeed, first bool) {
	if t := b.tenants[tenant]; t != nil {
		return t, false
	}
	t = &tenantFeed{}
	b.tenants[tenant] = t
	return t, true
}

// add adds a frame, or leaves it in the log if the tenant or all of them have too many. It reports
// whether the tenant was idle.
func (b *backlog) add(fr *frame.Frame) (first bool) {
	t, first := b.of(fr.Run.Tenant)
	switch {
	case t.behind:
	case len(t.waiting) >= b.limits.PerTenant || b.held >= b.limits.Frames:
		t.behind, t.next = true, fr.Pos-1
	default:
		t.waiting = append(t.waiting, light(fr))
		b.held++
	}
	return first
}

// rewind lets a tenant's frames after a position be read again. It reports whether the tenant was
// idle.
func (b *backlog) rewind(tenant string, pos uint64) (first bool) {
	pos = min(pos, b.position(tenant))
	t, first := b.of(tenant)
	b.held -= len(t.waiting)
	t.waiting, t.behind, t.next = nil, true, pos
	return first
}

// take returns the next frames of a tenant, at most n, and keeps them until done. If none wait, behind
// is the position after which they are read from the log; ok is false for a tenant that is idle now.
func (b *backlog) take(tenant string, n int) (frames []*frame.Frame, behind uint64, ok bool) {
	t := b.tenants[tenant]
	switch {
	case len(t.waiting) > 0:
		n = min(n, len(t.waiting))
		t.offered = slices.Clone(t.waiting[:n])
		t.waiting = slices.Delete(t.waiting, 0, n)
		b.held -= n
		return t.offered, 0, true
	case t.behind && t.next < b.read:
		return nil, t.next, true
	}
	delete(b.tenants, tenant)
	return nil, 0, false
}

// reread adds frames that were read from the log between two positions. It returns false if the tenant
// was rewound in the meantime.
func (b *backlog) reread(tenant string, frames []*frame.Frame, after, upTo uint64) bool {
	t := b.tenants[tenant]
	if t.next != after {
		return false
	}
	t.offered, t.next = frames, upTo
	return true
}

// done removes the frames that were taken.
func (b *backlog) done(tenant string) { b.tenants[tenant].offered = nil }

// drop removes all frames of a tenant without subscriptions.
func (b *backlog) drop(tenant string) {
	b.held -= len(b.tenants[tenant].waiting)
	delete(b.tenants, tenant)
}

// position returns the position up to which all frames of a tenant are offered.
func (b *backlog) position(tenant string) uint64 {
	pos, t := b.read, b.tenants[tenant]
	if t == nil {
		return pos
	}
	if t.behind {
		pos = min(pos, t.next)
	}
	for _, frames := range [][]*frame.Frame{t.offered, t.waiting} {
		if len(frames) > 0 {
			pos = min(pos, frames[0].Pos-1)
		}
	}
	return pos
}

// maxPositions limits the tenants with positions of their own in the feed's record.
const maxPositions = 256

// progress writes the positions of all tenants to a record. If too many are behind, those that are least
// behind share a position.
func (b *backlog) progress(to *feedRecord) {
	to.Read = b.read
	type behind struct {
		tenant string
		pos    uint64
	}
	var all []behind
	for tenant := range b.tenants {
		if pos := b.position(tenant); pos < b.read {
			all = append(all, behind{tenant, pos})
		}
	}
	slices.SortFunc(all, func(x, y behind) int { return cmp.Compare(x.pos, y.pos) })
	if len(all) > maxPositions {
		to.Read = all[maxPositions].pos
		all = all[:maxPositions]
	}
	to.Pos, to.Behind = to.Read, map[string]uint64{}
	for _, t := range all {
		to.Behind[t.tenant] = t.pos
		to.Pos = min(to.Pos, t.pos)
	}
}

// names returns the tenants that are not idle.
func (b *backlog) names() []string { return slices.Collect(maps.Keys(b.tenants)) }
