package sweep

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"waybill.dev/waybill/services/redactor/redact/corpus"
	"waybill.dev/waybill/test/rotation"
)

// everyBatch reports whether each secret is planted in each encoding, and each batch in every place.
// Otherwise a batch has several encodings. Every batch is planted in inputs and answers, every second
// one in other models and tools, and a sample elsewhere.
func everyBatch() bool { return os.Getenv("SWEEP") == "full" }

// secretCount is the number of planted secrets registered with the host.
const secretCount = 50

// secret is a value that must not appear in any output.
type secret struct{ id, value string }

// makeSecrets returns ids and values with the lengths and characters of credentials, including
// characters that JSON, URLs and logs escape.
func makeSecrets() []secret {
	r := rand.New(rand.NewPCG(7, 11)) //nolint:gosec // G404: reproducible on purpose
	signs := []rune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_+/=<>&%!")
	odd := []rune("\"\\'éß漢\n")
	var out []secret
	for i := range secretCount {
		var b strings.Builder
		for k := range 12 + r.IntN(30) {
			from := signs
			if i%4 == 3 && k%5 == 3 { // every fourth secret has escaped characters
				from = odd
			}
			b.WriteRune(from[r.IntN(len(from))])
		}
		out = append(out, secret{fmt.Sprintf("planted-%02d", i), b.String()})
	}
	return out
}

// item is a secret in its planted form.
type item struct {
	// marker is its replacement.
	marker string
	// text is the planted text, trace the part of it that a leak would show.
	text, trace string
}

// batch is a set of items planted together.
type batch struct {
	name  string
	items []item
	// sep separates two items.
	sep string
}

// knownBatches returns all secrets in each encoding. With SWEEP=full, a batch has one encoding.
// Otherwise it has several, each with a part of the secrets: another part in the next turn.
func knownBatches(secrets []secret) []batch {
	together := 3
	if everyBatch() {
		together = 1
	}
	count := (len(encodings) + together - 1) / together
	out := make([]batch, count)
	for i := range out {
		var names []string
		for k := range together {
			names = append(names, encodingAt(i+k*count).name)
		}
		out[i] = batch{name: strings.Join(names, " or "), sep: " "}
		for k, s := range secrets {
			e := encodingAt(i + (k+rotation.Turn())%together*count)
			out[i].items = append(out[i].items, item{"[REDACTED:" + s.id + "]", e.write(s.value), e.trace(s.value)})
		}
	}
	return out
}

// encodingAt returns an encoding by its number. Numbers start elsewhere in each turn, because not
// every batch is planted in every place.
func encodingAt(i int) encoding { return encodings[(i+rotation.Turn())%len(encodings)] }

// at returns the whole batch as one text that names where it is planted.
func (b batch) at(place string) string {
	texts := make([]string, len(b.items))
	for i, it := range b.items {
		texts[i] = it.text
	}
	return beginOf(place) + strings.Join(texts, b.sep) + endOf(place)
}

// The markers around a planted text. They survive every encoding on the way. Apart from the place
// they contain no word that a refusal replaces when it repeats the prompt.
func beginOf(place string) string { return "(at " + place + ") " }
func endOf(place string) string   { return " (that was " + place + ")" }

// short returns the shortest secret, for places with little room.
func (b batch) short() string {
	const most = 128
	shortest, size := "no item is short", most+1
	for _, it := range b.items {
		if len(it.text) < size {
			shortest, size = it.text, len(it.text)
		}
	}
	return shortest
}

// one returns the batch with one secret: the first from index i that fits, or none.
func (b batch) one(i int, fits func(text string) bool) batch {
	for ; i < len(b.items); i++ {
		if fits(b.items[i].text) {
			return batch{name: b.name, items: b.items[i : i+1], sep: b.sep}
		}
	}
	return batch{name: b.name, sep: b.sep}
}

// shaped reports whether the planted texts are unregistered secrets.
func (b batch) shaped() bool { return strings.HasPrefix(b.items[0].marker, "[REDACTED:shape.") }

// cut splits the batch so that each text has at most this many bytes.
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

// shapedBatches are unregistered secrets of each kind that the redactor detects by its shape: one in
// each turn, all with SWEEP=full. A batch is small, so that a text stays within the line length
// guaranteed for streams.
func shapedBatches() []batch {
	const (
		variants = 2
		together = 4
	)
	var items []item
	seen := map[string]int{}
	for _, l := range corpus.Make(variants) {
		n := seen[l.Rule]
		seen[l.Rule]++
		if l.Rule == "" || n >= variants || !everyBatch() && !rotation.Includes(n, variants) {
			continue
		}
		items = append(items, item{"[REDACTED:shape." + l.Rule + "]", l.Text, l.Secret})
	}
	first := rotation.Turn() % len(items)
	items = slices.Concat(items[first:], items[:first]) // not every batch is planted in every place
	var out []batch
	for i := 0; i < len(items); i += together {
		// The space ends an unquoted value also where the line break is escaped.
		out = append(out, batch{fmt.Sprintf("shapes from %d", i), items[i:min(i+together, len(items))], " \n"})
	}
	return out
}

// missing lists the markers absent at a place of a document read after redaction. None missing
// proves that the planted text arrived.
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
