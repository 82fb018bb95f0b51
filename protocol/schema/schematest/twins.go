package schematest

import "testing"

// Twins are schemas with the same meaning.
type Twins struct {
	// Schemas are the documents; mutants are derived from all of them.
	Schemas []any
	// Words are strings for patterns and formats.
	Words []string
	// Adapt turns a sample of one schema into one of all; nil if not needed.
	Adapt func(sample any)
}

// Compare passes every sample of every schema, and every mutant of those, to agree, once each.
// agree fails the test if validators differ, and returns whether they accept the document. Compare
// fails if all documents are valid or all are invalid, because that proves little, and if a sample
// is invalid.
func (w Twins) Compare(t testing.TB, agree func(what string, doc []byte) (valid bool)) {
	t.Helper()
	seen := map[string]bool{}
	fresh := func(doc []byte) bool {
		old := seen[string(doc)]
		seen[string(doc)] = true
		return !old
	}
	var valid, invalid int
	for _, schema := range w.Schemas {
		for _, sample := range Samples(schema, w.Words...) {
			if w.Adapt != nil {
				w.Adapt(sample)
			}
			doc := Document(t, sample)
			if !fresh(doc) {
				continue
			}
			if !agree("a sample", doc) {
				t.Fatalf("a sample is not valid: %s", doc)
			}
			for m := range Mutants(sample, w.Schemas...) {
				switch {
				case !fresh(m.Document):
				case agree(m.Change, m.Document):
					valid++
				default:
					invalid++
				}
			}
		}
	}
	t.Logf("%d valid mutants, %d invalid ones", valid, invalid)
	if valid < 10 || invalid < 50 {
		t.Fatal("too few mutants to prove anything")
	}
}
