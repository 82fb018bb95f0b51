package sweep

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"waybill.dev/waybill/services/redactor/redact/corpus"
)

// secretCount is how many secrets are planted that the host was told of.
const secretCount = 50

// secret is a value that must not show.
type secret struct{ id, value string }

// makeSecrets gives ids and values of the lengths and signs that credentials have,
// and of signs that writers of JSON, URLs and logs escape.
func makeSecrets() []secret {
	r := rand.New(rand.NewPCG(7, 11)) //nolint:gosec // G404: reproducible on purpose
	signs := []rune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_+/=<>&%!")
	odd := []rune("\"\\'éß漢\n")
	var out []secret
	for i := range secretCount {
		var b strings.Builder
		for k := range 12 + r.IntN(30) {
			from := signs
			if i%4 == 3 && k%5 == 3 { // every fourth one has signs that are escaped
				from = odd
			}
			b.WriteRune(from[r.IntN(len(from))])
		}
		out = append(out, secret{fmt.Sprintf("planted-%02d", i), b.String()})
	}
	return out
}

// item is a secret the way it is planted.
type item struct {
	// marker is what stands in its place.
	marker string
	// text is what is planted, trace what of it would show.
	text, trace string
}

// batch is what is planted together.
type batch struct {
	name  string
	items []item
	// sep stands between two items.
	sep string
}

// knownBatches plants all secrets, once in each encoding.
func knownBatches(secrets []secret) []batch {
	var out []batch
	for _, e := range encodings {
		b := batch{name: e.name, sep: " "}
		for _, s := range secrets {
			b.items = append(b.items, item{"[REDACTED:" + s.id + "]", e.write(s.value), e.trace(s.value)})
		}
		out = append(out, b)
	}
	return out
}

// at is the whole batch as one text that tells where it was planted.
func (b batch) at(place string) string {
	texts := make([]string, len(b.items))
	for i, it := range b.items {
		texts[i] = it.text
	}
	return beginOf(place) + strings.Join(texts, b.sep) + endOf(place)
}

// The marks around what is planted. They survive every encoding on the way; but for
// the place they have no word that is struck out where a refusal repeats the prompt.
func beginOf(place string) string { return "(at " + place + ") " }
func endOf(place string) string   { return " (that was " + place + ")" }

// short is the shortest secret, where there is room for little.
func (b batch) short() string {
	const most = 128
	shortest, size := "none of them is short", most+1
	for _, it := range b.items {
		if len(it.text) < size {
			shortest, size = it.text, len(it.text)
		}
	}
	return shortest
}

// one is the batch with one secret, the first from the i-th on that fits; without any
// where none does.
func (b batch) one(i int, fits func(text string) bool) batch {
	for ; i < len(b.items); i++ {
		if fits(b.items[i].text) {
			return batch{name: b.name, items: b.items[i : i+1], sep: b.sep}
		}
	}
	return batch{name: b.name, sep: b.sep}
}

// shaped reports whether nobody has registered what is planted.
func (b batch) shaped() bool { return strings.HasPrefix(b.items[0].marker, "[REDACTED:shape.") }

// cut gives batches whose texts have at most a number of bytes each.
func (b batch) cut(most int) []batch {
	var out []batch
	size := most + 1
	for _, it := range b.items {
		if size+len(it.text)+len(b.sep) > most {
			out = append(out, batch{name: b.name, sep: b.sep})
			size = 0
		}
		last := &out[len(out)-1]
		last.items = append(last.items, it)
		size += len(it.text) + len(b.sep)
	}
	return out
}

// shapedBatches are secrets that nobody has registered, one of each kind that the
// redactor recognises by its shape, several times over; few together, so that a
// text stays within the lines that are promised for streams.
func shapedBatches() []batch {
	const (
		variants = 2
		together = 4
	)
	var items []item
	seen := map[string]int{}
	for _, l := range corpus.Make(variants) {
		if seen[l.Rule]++; l.Rule != "" && seen[l.Rule] <= variants {
			items = append(items, item{"[REDACTED:shape." + l.Rule + "]", l.Text, l.Secret})
		}
	}
	var out []batch
	for i := 0; i < len(items); i += together {
		out = append(out, batch{fmt.Sprintf("shapes from %d", i), items[i:min(i+together, len(items))], "\n"})
	}
	return out
}

// missing lists the markers that do not stand at a place of a document, which was
// read after everything was taken out. None missing proves that what was planted
// there has arrived.
func (b batch) missing(place, doc string) []string {
	left := map[string]int{}
	for _, it := range b.items {
		left[it.marker]++
	}
	want := maps.Clone(left)
	for _, part := range strings.Split(doc, beginOf(place))[1:] {
		part, _, _ = strings.Cut(part, endOf(place))
		for marker, n := range want {
			left[marker] = min(left[marker], n-strings.Count(part, marker))
		}
	}
	var out []string
	for marker, n := range left {
		if n > 0 {
			out = append(out, marker)
		}
	}
	slices.Sort(out)
	return out
}
