package postgres

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
)

// generation is a set of tables, as seen by this process. It is replaced, never changed, when the
// process adopts another one.
type generation struct {
	id  int64
	sql statements
	// reached is the highest position that this process has seen stored, as the tail or of a run:
	// its next batch builds on that.
	reached atomic.Uint64
	// moved: the tables are gone, or not in the state this process left them.
	moved atomic.Bool
}

// reach records a position; it never goes back.
func (g *generation) reach(pos uint64) {
	for old := g.reached.Load(); pos > old; old = g.reached.Load() {
		if g.reached.CompareAndSwap(old, pos) {
			return
		}
	}
}

// Names of schemas. A generation is named after its creation time in milliseconds of the server's
// clock, so a name is never reused.
func (c Config) generationSchema(id int64) string { return c.Schema + "_g" + strconv.FormatInt(id, 10) }

// asideSchema returns the schema name of a generation that is no longer in use.
func (c Config) asideSchema(id int64) string {
	return c.Schema + "_aside_" + strconv.FormatInt(id, 10)
}

func (c Config) controlTable() string { return c.Schema + ".control" }

// statements are the statements for the tables of one generation. They fail once it is gone.
type statements struct {
	tail, lock, position                 string
	putRuns, putTags, putFrames, putTail string
	putMarks, putSubstitutions           string
	eraseTags, eraseMark                 string
	eraseSubstitution                    string
	eraseFrames, eraseRun                string
	run, frames, list, due, owned        string
	oldest, ended, countEnded            string
	listTagged, listMarked, marked       string
	substitutions                        string
	tagged                               string
	withoutFacts, fillFacts              string
	lockTallies, putTallies              string
	expireTallies, eraseTallies, tallies string
	talliedTenants                       string
	putTexts, eraseText, listTexts       string
}

// runColumns are the columns of a run's row in the order of scanRun.
const runColumns = `tenant, run_id, workflow_id, status, created_at, started_at, completed_at, error_code, tags, head, pos, hash, due_ms, asks, last_event_at, waits, owner, owner_epoch, owned_since, damage, ` +
	factColumns + `, sum`

// substitutionColumns are the columns of a substitution in the order of scanSubstitution.
const substitutionColumns = `tenant, at, run_id, seq, node_id, original_provider, original_model, fallback_provider, fallback_model, missing, sum`

func (c Config) statements(id int64) statements {
	in := strings.NewReplacer("{g}", c.generationSchema(id), "{control}", c.controlTable(), "{columns}", runColumns, "{substitution}", substitutionColumns, "{facts}", factColumns)
	tail := `SELECT c.generation, c.version, t.pos, t.hash, t.sum FROM {control} c, {g}.tail t WHERE c.id = 1 AND t.id = 1`
	return statements{
		tail:     in.Replace(tail),
		lock:     in.Replace(tail + ` FOR UPDATE OF t`),
		position: in.Replace(`SELECT pos FROM {g}.tail WHERE id = 1`),
		putRuns: in.Replace(`INSERT INTO {g}.runs AS r ({columns})
			SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
				$9::text[], $10::int[], $11::bigint[], $12::text[], $13::bigint[], $14::int[], $15::text[], $16::text[], $17::text[], $18::bigint[],
				$19::text[], $20::text[], $21::smallint[], $22::text[], $23::text[], $24::bigint[], $25::bigint[], $26::bigint[],
				$27::float8[], $28::bigint[], $29::text[], $30::text[], $31::bigint[])
			ON CONFLICT (tenant, run_id) DO UPDATE SET
				status = excluded.status, started_at = excluded.started_at, completed_at = excluded.completed_at,
				error_code = excluded.error_code, head = excluded.head, pos = excluded.pos, hash = excluded.hash,
				due_ms = excluded.due_ms, asks = excluded.asks, last_event_at = excluded.last_event_at,
				waits = excluded.waits, owner = excluded.owner, owner_epoch = excluded.owner_epoch,
				owned_since = excluded.owned_since, damage = excluded.damage, facts = excluded.facts,
				model = excluded.model, last_node = excluded.last_node, tokens_in = excluded.tokens_in,
				tokens_out = excluded.tokens_out, tokens = excluded.tokens, cost = excluded.cost,
				duration_ms = excluded.duration_ms, waiting_since = excluded.waiting_since,
				inputs = excluded.inputs, sum = excluded.sum
			WHERE excluded.pos >= r.pos`),
		eraseTags: in.Replace(`DELETE FROM {g}.tags
			WHERE tenant = $1 AND tag = ANY($2::text[]) AND created_at = $3 AND run_id = $4`),
		eraseMark: in.Replace(`DELETE FROM {g}.marks
			WHERE tenant = $1 AND name = $2 AND value = $3 AND created_at = $4 AND run_id = $5`),
		eraseSubstitution: in.Replace(`DELETE FROM {g}.substitutions
			WHERE tenant = $1 AND at = $2 AND run_id = $3 AND seq = $4`),
		eraseFrames: in.Replace(`DELETE FROM {g}.frames WHERE tenant = $1 AND run_id = $2`),
		eraseRun:    in.Replace(`DELETE FROM {g}.runs WHERE tenant = $1 AND run_id = $2`),
		putTags: in.Replace(`INSERT INTO {g}.tags (tenant, tag, created_at, run_id)
			SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) ON CONFLICT DO NOTHING`),
		putFrames: in.Replace(`INSERT INTO {g}.frames (tenant, run_id, first, last, types, sum, body)
			SELECT * FROM unnest($1::text[], $2::text[], $3::int[], $4::int[], $5::text[], $6::bigint[], $7::bytea[])
			ON CONFLICT DO NOTHING`),
		putMarks: in.Replace(`INSERT INTO {g}.marks (tenant, name, value, created_at, run_id)
			SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) ON CONFLICT DO NOTHING`),
		putSubstitutions: in.Replace(`INSERT INTO {g}.substitutions ({substitution})
			SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::int[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::bigint[])
			ON CONFLICT DO NOTHING`),
		putTail: in.Replace(`UPDATE {g}.tail SET pos = $1, hash = $2, sum = $3 WHERE id = 1`),
		run:     in.Replace(`SELECT {columns} FROM {g}.runs WHERE tenant = $1 AND run_id = $2`),
		// The first row is found by key, so that a page deep in a long run costs as much as the
		// first. ORDER BY instead of max, because without statistics max would scan all rows before
		// it. It reads only rows that can belong to the page, and no body after it.
		frames: in.Replace(`SELECT first, last, types, sum, body FROM (
				SELECT *, sum(octet_length(body)) OVER (ORDER BY first ROWS UNBOUNDED PRECEDING) - octet_length(body) AS before
				FROM (SELECT first, last, types, sum, body FROM {g}.frames
					WHERE tenant = $1 AND run_id = $2 AND first >=
						coalesce((SELECT first FROM {g}.frames
							WHERE tenant = $1 AND run_id = $2 AND first <= $3 ORDER BY first DESC LIMIT 1), 0)
					ORDER BY first LIMIT $4) AS page) AS sized
			WHERE before < $5 ORDER BY first`),
		// The first words of a run stay, up to a limit.
		putTexts: in.Replace(`INSERT INTO {g}.texts AS t (tenant, run_id, words)
			SELECT tenant, run_id, array_to_tsvector(string_to_array(words, ' '))
			FROM unnest($1::text[], $2::text[], $3::text[]) AS n (tenant, run_id, words)
			ON CONFLICT (tenant, run_id) DO UPDATE SET words = t.words || excluded.words WHERE length(t.words) <= $4`),
		eraseText: in.Replace(`DELETE FROM {g}.texts WHERE tenant = $1 AND run_id = $2`),
		listTexts: in.Replace(`SELECT ` + qualified("p") + ` FROM {g}.texts AS x
			JOIN {g}.runs AS p ON p.tenant = x.tenant AND p.run_id = x.run_id`),
		list: in.Replace(`SELECT {columns} FROM {g}.runs AS p`),
		listTagged: in.Replace(`SELECT ` + qualified("r") + ` FROM {g}.tags AS p
			JOIN {g}.runs AS r ON r.tenant = p.tenant AND r.run_id = p.run_id`),
		listMarked: in.Replace(`SELECT ` + qualified("r") + ` FROM {g}.marks AS p
			JOIN {g}.runs AS r ON r.tenant = p.tenant AND r.run_id = p.run_id`),
		// Not EXISTS: the planner would join all runs of the mark, while a page needs few of them.
		marked: in.Replace(`(SELECT true FROM {g}.marks AS m WHERE m.tenant = p.tenant AND m.created_at = p.created_at AND m.run_id = p.run_id`),
		tagged: in.Replace(`(SELECT true FROM {g}.tags AS t WHERE t.tenant = p.tenant AND t.created_at = p.created_at AND t.run_id = p.run_id`),
		// One statement, so that a run that is erased at the same time gets no marks.
		fillFacts: in.Replace(`WITH filled AS (
				UPDATE {g}.runs AS r SET facts = f.facts, model = f.model, last_node = f.last_node, tokens_in = f.tokens_in,
					tokens_out = f.tokens_out, tokens = f.tokens, cost = f.cost, duration_ms = f.duration_ms,
					waiting_since = f.waiting_since, inputs = f.inputs, sum = f.sum
				FROM unnest($1::text[], $2::text[], $3::bigint[], $4::smallint[], $5::text[], $6::text[], $7::bigint[], $8::bigint[],
					$9::bigint[], $10::float8[], $11::bigint[], $12::text[], $13::text[], $14::bigint[])
					AS f (tenant, run_id, pos, {facts}, sum)
				WHERE r.tenant = f.tenant AND r.run_id = f.run_id AND r.pos = f.pos AND r.facts = 0
				RETURNING r.tenant, r.run_id)
			INSERT INTO {g}.marks (tenant, name, value, created_at, run_id)
			SELECT m.tenant, m.name, m.value, m.created_at, m.run_id
			FROM unnest($15::text[], $16::text[], $17::text[], $18::text[], $19::text[]) AS m (tenant, name, value, created_at, run_id)
			JOIN filled ON filled.tenant = m.tenant AND filled.run_id = m.run_id
			ON CONFLICT DO NOTHING`),
		lockTallies: in.Replace(`SELECT t.tenant, t.grain, t.at, t.workflow_id, t.sum, t.doc
			FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[]) AS k (tenant, grain, at, workflow_id)
			JOIN {g}.tallies AS t USING (tenant, grain, at, workflow_id)`),
		putTallies: in.Replace(`INSERT INTO {g}.tallies (tenant, grain, at, workflow_id, sum, doc)
			SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::bytea[])
			ON CONFLICT (tenant, grain, at, workflow_id) DO UPDATE SET sum = excluded.sum, doc = excluded.doc`),
		expireTallies: in.Replace(`DELETE FROM {g}.tallies WHERE tenant = $1 AND grain = $2 AND at < $3`),
		eraseTallies:  in.Replace(`DELETE FROM {g}.tallies WHERE tenant = $1 AND NOT EXISTS (SELECT FROM {g}.runs WHERE tenant = $1)`),
		tallies: in.Replace(`SELECT tenant, grain, at, workflow_id, sum, doc FROM {g}.tallies
			WHERE tenant = $1 AND grain = $2 AND (at, workflow_id) > ($3, $4) AND at < $5 AND ($6 = '' OR workflow_id = $6)
			ORDER BY at, workflow_id LIMIT $7`),
		// Reads one row of the table for each tenant.
		talliedTenants: in.Replace(`WITH RECURSIVE t (tenant) AS (
				SELECT (SELECT tenant FROM {g}.tallies WHERE tenant > $1 ORDER BY tenant LIMIT 1)
				UNION ALL SELECT (SELECT a.tenant FROM {g}.tallies AS a WHERE a.tenant > t.tenant ORDER BY a.tenant LIMIT 1)
				FROM t WHERE t.tenant IS NOT NULL)
			SELECT tenant FROM t WHERE tenant IS NOT NULL LIMIT $2`),
		withoutFacts: in.Replace(`SELECT {columns} FROM {g}.runs WHERE facts = 0 LIMIT $1`),
		substitutions: in.Replace(`SELECT {substitution} FROM {g}.substitutions WHERE tenant = $1 AND at >= $2
			ORDER BY at DESC, run_id DESC, seq DESC LIMIT $3`),
		due: in.Replace(`SELECT {columns} FROM {g}.runs WHERE due_ms < $1 AND (due_ms, tenant, run_id) > ($2, $3, $4)
			ORDER BY due_ms, tenant, run_id LIMIT $5`),
		owned: in.Replace(`SELECT {columns} FROM {g}.runs WHERE owner = $1 AND owner <> '' AND (tenant, run_id) > ($2, $3)
			ORDER BY tenant, run_id LIMIT $4`),
		oldest: in.Replace(`SELECT {columns} FROM {g}.runs WHERE completed_at <> '' AND (tenant, workflow_id) > ($1, $2)
			ORDER BY tenant, workflow_id, completed_at, run_id LIMIT 1`),
		ended: in.Replace(`SELECT {columns} FROM {g}.runs WHERE completed_at <> '' AND tenant = $1 AND workflow_id = $2
			AND completed_at < $3 AND (completed_at, run_id) > ($4, $5) ORDER BY completed_at, run_id LIMIT $6`),
		countEnded: in.Replace(`SELECT count(*) FROM {g}.runs WHERE completed_at <> '' AND tenant = $1 AND workflow_id = $2
			AND completed_at < $3`),
	}
}

// qualified returns the columns of a run's row with the table's name.
func qualified(table string) string {
	return fmt.Sprintf("%s.%s", table, strings.ReplaceAll(runColumns, ", ", ", "+table+"."))
}
