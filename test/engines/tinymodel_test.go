package engines

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// A model of 2 MB with fixed weights, so that a real engine gives known answers: a llama of one layer
// whose attention does nothing. Each token is a byte, and the logits of the next token depend on the last
// one only. After a line break it says the spoken text and ends. Held to a grammar, it closes strings, lists
// and objects as soon as it may.

const (
	width  = 320 // of the embedding; at least vocab
	heads  = 5
	hidden = 64
	room   = 512 // the context window
	vocab  = 257
	ends   = 256 // the token that ends an answer
)

// preference are the logits of single tokens, whatever precedes them.
func preference(token int) float32 {
	switch token {
	case '"':
		return 9
	case '}', ']':
		return 8
	case ',', ':':
		return 7
	case '{':
		return 6
	case ends:
		return 5
	case ' ', '\t', '\r', '\n', '\\':
		return -9
	}
	return -float32(token%7) / 8
}

// spoken is the model's answer. No byte occurs in it twice, because the next one depends on the last
// alone. The redactor releases it in parts.
const spoken = "Judge,my vow;black(fist)|Pzx."

// chain reports whether a token is sure to follow another.
func chain(last, next int) bool {
	if last == '\n' {
		return next == int(spoken[0])
	}
	at := strings.IndexByte(spoken, byte(last)) //nolint:gosec // tokens of the answer are bytes
	if last >= ends || at < 0 {
		return false
	}
	if at == len(spoken)-1 {
		return next == ends
	}
	return next == int(spoken[at+1])
}

// tokens are the names of the tokens: GPT-2's letters for bytes.
func tokens() []string {
	var out []string
	shifted := rune(256)
	for b := range ends {
		r := rune(b)
		if printable := '!' <= r && r <= '~' || '¡' <= r && r <= '¬' || '®' <= r; !printable {
			r = shifted
			shifted++
		}
		out = append(out, string(r))
	}
	return append(out, "<|endoftext|>")
}

// Types of values of the format GGUF.
const (
	ggufUint32  = 4
	ggufInt32   = 5
	ggufFloat32 = 6
	ggufString  = 8
	ggufArray   = 9
)

// gguf writes a file of the format GGUF, version 3.
type gguf struct {
	head, tensors, data bytes.Buffer
	keys, count         uint64
}

func put(b *bytes.Buffer, values ...any) {
	for _, v := range values {
		if s, ok := v.(string); ok {
			put(b, uint64(len(s)))
			b.WriteString(s)
			continue
		}
		_ = binary.Write(b, binary.LittleEndian, v) // numbers into memory
	}
}

func (g *gguf) key(name string, kind uint32, values ...any) {
	g.keys++
	put(&g.head, name, kind)
	put(&g.head, values...)
}

// tensor adds a matrix of rows; 0 rows is a vector.
func (g *gguf) tensor(name string, columns, rows int, value func(row, column int) float32) {
	const alignment = 32
	g.count++
	dims := []any{uint32(2), uint64(columns), uint64(rows)}
	if rows == 0 {
		dims, rows = []any{uint32(1), uint64(columns)}, 1
	}
	put(&g.tensors, name)
	put(&g.tensors, dims...)
	put(&g.tensors, uint32(0), uint64(g.data.Len()))
	for row := range rows {
		for column := range columns {
			put(&g.data, value(row, column))
		}
	}
	g.data.Write(make([]byte, (alignment-g.data.Len()%alignment)%alignment))
}

func (g *gguf) bytes() []byte {
	const alignment = 32
	var out bytes.Buffer
	out.WriteString("GGUF")
	put(&out, uint32(3), g.count, g.keys)
	out.Write(g.head.Bytes())
	out.Write(g.tensors.Bytes())
	out.Write(make([]byte, (alignment-out.Len()%alignment)%alignment))
	out.Write(g.data.Bytes())
	return out.Bytes()
}

// tinyModel returns the model's file.
func tinyModel() []byte {
	var g gguf
	text := func(name, value string) { g.key(name, ggufString, value) }
	number := func(name string, value int) { g.key(name, ggufUint32, uint32(value)) } //nolint:gosec // small
	text("general.architecture", "llama")
	text("general.name", "tiny-bigram")
	number("general.file_type", 0)
	number("llama.context_length", room)
	number("llama.embedding_length", width)
	number("llama.block_count", 1)
	number("llama.feed_forward_length", hidden)
	number("llama.attention.head_count", heads)
	number("llama.attention.head_count_kv", heads)
	number("llama.rope.dimension_count", width/heads)
	number("llama.vocab_size", vocab)
	g.key("llama.attention.layer_norm_rms_epsilon", ggufFloat32, float32(1e-5))
	text("tokenizer.ggml.model", "gpt2")
	text("tokenizer.ggml.pre", "gpt-2")
	names, types := []any{uint32(ggufString), uint64(vocab)}, []any{uint32(ggufInt32), uint64(vocab)}
	for i, name := range tokens() {
		kind := int32(1)
		if i == ends {
			kind = 3
		}
		names, types = append(names, name), append(types, kind)
	}
	g.key("tokenizer.ggml.tokens", ggufArray, names...)
	g.key("tokenizer.ggml.token_type", ggufArray, types...)
	g.key("tokenizer.ggml.merges", ggufArray, uint32(ggufString), uint64(1), "t h")
	for _, name := range []string{"bos", "eos", "unknown"} {
		number("tokenizer.ggml."+name+"_token_id", ends)
	}

	const scale = 10
	none := func(int, int) float32 { return 0 }
	one := func(int, int) float32 { return 1 }
	g.tensor("token_embd.weight", width, vocab, func(token, column int) float32 {
		if token == column {
			return scale
		}
		return 0
	})
	g.tensor("output_norm.weight", width, 0, one)
	const norm = 17.88854 // what the norm makes of an embedding: √width
	g.tensor("output.weight", width, vocab, func(next, last int) float32 {
		logit := preference(next)
		if chain(last, next) {
			logit = 2 * scale
		}
		return logit / norm
	})
	const layer = "blk.0."
	g.tensor(layer+"attn_norm.weight", width, 0, one)
	for _, name := range []string{"attn_q", "attn_k", "attn_v", "attn_output"} {
		g.tensor(layer+name+".weight", width, width, none)
	}
	g.tensor(layer+"ffn_norm.weight", width, 0, one)
	g.tensor(layer+"ffn_gate.weight", width, hidden, none)
	g.tensor(layer+"ffn_up.weight", width, hidden, none)
	g.tensor(layer+"ffn_down.weight", hidden, width, none)
	return g.bytes()
}
