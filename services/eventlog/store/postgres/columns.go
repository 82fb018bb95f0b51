package postgres

import (
	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/store/row"
)

// Rows are sent to the server column by column, in one statement.

// columns are rows of runs.
type columns struct {
	tenant, runID, workflowID, status, createdAt, startedAt, completedAt, errorCode, tags, hash, lastEventAt, waits, owner, ownedSince, damage []string

	head, asks      []int32
	pos, epoch, sum []int64
	due             []*int64
	facts           factRows
}

func (c *columns) add(r *store.Run) {
	tags := row.JoinTags(r.Tags)
	c.tenant = append(c.tenant, encode(r.Tenant))
	c.runID = append(c.runID, encode(r.RunID))
	c.workflowID = append(c.workflowID, encode(r.WorkflowID))
	c.status = append(c.status, encode(string(r.Status)))
	c.createdAt = append(c.createdAt, encode(r.CreatedAt))
	c.startedAt = append(c.startedAt, encode(r.StartedAt))
	c.completedAt = append(c.completedAt, encode(r.CompletedAt))
	c.errorCode = append(c.errorCode, encode(r.ErrorCode))
	c.tags = append(c.tags, encode(tags))
	c.head = append(c.head, int32(r.Head)) //nolint:gosec // G115: sequences are far below 2^31
	c.pos = append(c.pos, int64(r.Pos))    //nolint:gosec // G115: positions stay far below 2^63
	c.hash = append(c.hash, encode(r.Hash))
	c.asks = append(c.asks, int32(r.Asks)) //nolint:gosec // G115: a small number
	c.lastEventAt = append(c.lastEventAt, encode(r.LastEventAt))
	c.waits = append(c.waits, encode(r.Waits))
	c.owner = append(c.owner, encode(r.Owner.Process))
	c.epoch = append(c.epoch, int64(r.Owner.Epoch)) //nolint:gosec // G115: epochs stay far below 2^63
	c.ownedSince = append(c.ownedSince, encode(r.Owner.Since))
	c.damage = append(c.damage, encode(r.Damage))
	c.sum = append(c.sum, int64(row.SumRun(r, tags)))
	var due *int64
	if r.DueMs != 0 {
		due = &r.DueMs
	}
	c.due = append(c.due, due)
	c.facts.add(&r.Facts)
}

// args returns the columns in the order of runColumns.
func (c *columns) args() []any {
	all := []any{
		c.tenant, c.runID, c.workflowID, c.status, c.createdAt, c.startedAt, c.completedAt, c.errorCode, c.tags,
		c.head, c.pos, c.hash, c.due, c.asks, c.lastEventAt, c.waits, c.owner, c.epoch, c.ownedSince, c.damage,
	}
	return append(append(all, c.facts.args()...), c.sum)
}

// tagColumns are rows of tags.
type tagColumns struct{ tenant, tag, createdAt, runID []string }

func (c *tagColumns) add(r *store.Run) {
	for _, tag := range r.Tags {
		c.tenant = append(c.tenant, encode(r.Tenant))
		c.tag = append(c.tag, encode(tag))
		c.createdAt = append(c.createdAt, encode(r.CreatedAt))
		c.runID = append(c.runID, encode(r.RunID))
	}
}

// frameColumns are rows of frames.
type frameColumns struct {
	tenant, runID, types []string
	first, last          []int32
	sum                  []int64
	body                 [][]byte
}

func (c *frameColumns) add(f *store.Frame) {
	types := row.JoinTypes(f.Types)
	c.tenant = append(c.tenant, encode(f.Tenant))
	c.runID = append(c.runID, encode(f.RunID))
	c.first = append(c.first, int32(f.First)) //nolint:gosec // G115: sequences are far below 2^31
	c.last = append(c.last, int32(f.Last))    //nolint:gosec // G115: as above
	c.types = append(c.types, encode(types))
	c.sum = append(c.sum, int64(row.SumFrame(f, types)))
	c.body = append(c.body, f.Body)
}

func (c *frameColumns) args() []any {
	return []any{c.tenant, c.runID, c.first, c.last, c.types, c.sum, c.body}
}

// markColumns are rows of marks.
type markColumns struct{ tenant, name, value, createdAt, runID []string }

func (c *markColumns) add(m *store.Mark) {
	c.tenant = append(c.tenant, encode(m.Tenant))
	c.name = append(c.name, string(m.Name))
	c.value = append(c.value, encode(m.Value))
	c.createdAt = append(c.createdAt, encode(m.CreatedAt))
	c.runID = append(c.runID, encode(m.RunID))
}

// substitutionRows are rows of substitutions.
type substitutionRows struct {
	tenant, at, runID, nodeID, originalProvider, originalModel, fallbackProvider, fallbackModel, missing []string

	seq []int32
	sum []int64
}

func (c *substitutionRows) add(s *store.Substitution) {
	missing := row.JoinTags(s.Missing)
	c.tenant = append(c.tenant, encode(s.Tenant))
	c.at = append(c.at, encode(s.At))
	c.runID = append(c.runID, encode(s.RunID))
	c.seq = append(c.seq, int32(s.Sequence)) //nolint:gosec // G115: sequences are far below 2^31
	c.nodeID = append(c.nodeID, encode(s.NodeID))
	c.originalProvider = append(c.originalProvider, encode(s.Original.Provider))
	c.originalModel = append(c.originalModel, encode(s.Original.Model))
	c.fallbackProvider = append(c.fallbackProvider, encode(s.Fallback.Provider))
	c.fallbackModel = append(c.fallbackModel, encode(s.Fallback.Model))
	c.missing = append(c.missing, encode(missing))
	c.sum = append(c.sum, int64(row.SumSubstitution(s, missing)))
}

// args returns the columns in the order of substitutionColumns.
func (c *substitutionRows) args() []any {
	return []any{
		c.tenant, c.at, c.runID, c.seq, c.nodeID, c.originalProvider, c.originalModel, c.fallbackProvider,
		c.fallbackModel, c.missing, c.sum,
	}
}
