package schematest

import "testing"

// Twins are schemas that are to mean the same.
type Twins struct {
	// Schemas are the documents; what to change, and to what, follows from all.
	Schemas []any
	// Words are texts for patterns and formats.
	Words []string
	// Adapt makes a sample of one schema one of all; nil: they are already.
	Adapt func(sample any)
}

// Compare hands every sample of every schema, and every mutant of those, to agree,
// once each. agree fails the test if validators differ, and tells whether they find
// the document valid. A comparison that sees only one of the two proves little, so
// that fails as well, and so does a sample that is not valid.
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
