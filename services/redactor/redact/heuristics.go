package redact

import (
	"bytes"
	"math"
	"strings"
)

// entropySize is how many bytes entropy reads.
const entropySize = 64

// entropy returns the Shannon entropy of the start of a text, in bits per byte.
func entropy(text []byte) float64 {
	var counts [256]uint8
	text = text[:min(len(text), entropySize)]
	for _, c := range text {
		counts[c]++
	}
	h, n := 0.0, float64(len(text))
	for _, c := range text {
		if k := float64(counts[c]); k > 0 {
			h -= k / n * math.Log2(k/n)
			counts[c] = 0
		}
	}
	return h
}

// Limits of what isWords accepts as a word.
const (
	maxWordLetters = 18
	maxConsonants  = 4
	shortWord      = 3
	acronym        = 5 // longest acronym, such as HTTPS
)

// isWords reports that a text consists of words, such as sk-learn-compatible or
// getPasswordFromVault, not of random letters. With digits, it may contain short numbers,
// such as v2 or 2026.
func isWords(text []byte, digits bool) bool {
	letters, long := 0, 0
	for i := 0; i < len(text); {
		c := text[i]
		n := 1
		switch {
		case isLetter(c):
			n = wordLength(text[i:])
			if n > shortWord && (n > acronym || !isUpper(text[i+n-1])) {
				if !isPronounceable(text[i : i+n]) {
					return false
				}
				long += n
			}
			letters += n
		case isDigit(c):
			for i+n < len(text) && isDigit(text[i+n]) {
				n++
			}
			if !digits || n > 4 || i+n < len(text) && isLetter(text[i+n]) {
				return false
			}
		case strings.IndexByte("_-./: ", c) < 0:
			return false
		}
		i += n
	}
	return letters > 0 && 2*long >= letters
}

// wordLength returns the length of the word at the start of text: letters in one case, or
// a capital and lower case letters.
func wordLength(text []byte) int {
	n := 1
	for n < len(text) && isLetter(text[n]) {
		if isUpper(text[n]) && !isUpper(text[n-1]) {
			break
		}
		if n > 1 && !isUpper(text[n]) && isUpper(text[n-1]) {
			return n - 1 // HTTPServer: HTTP and Server
		}
		n++
	}
	return n
}

// isPronounceable reports that letters may be a word: with vowels, and few consonants in a
// row.
func isPronounceable(word []byte) bool {
	if len(word) > maxWordLetters {
		return false
	}
	vowels, row := 0, 0
	for _, c := range word {
		if strings.IndexByte("aeiouy", c|0x20) >= 0 {
			vowels++
			row = 0
			continue
		}
		if row++; row > maxConsonants {
			return false
		}
	}
	return vowels > 0 && 4*vowels <= 3*len(word)
}

// isTemplate reports a template variable: ${KEY}, {{ key }}, <your key>, %s.
func isTemplate(v []byte) bool {
	for _, begin := range []string{"${", "{{", "<", "$(", "%(", "%s", "%v", "{%", "#{", "@@"} {
		if bytes.HasPrefix(v, []byte(begin)) {
			return true
		}
	}
	if len(v) > 1 && v[0] == '$' {
		for _, c := range v[1:] {
			if !isUpper(c) && c != '_' && !isDigit(c) {
				return false
			}
		}
		return true
	}
	return false
}

// isReference reports code that reads a value: process.env.KEY, fromVault(ctx).
func isReference(v []byte) bool {
	i, dots := 0, 0
	for i < len(v) {
		n := 0
		for i+n < len(v) && (isWord(v[i+n]) || v[i+n] == '$') {
			n++
		}
		if n == 0 || isDigit(v[i]) {
			return false
		}
		first := i == 0
		i += n
		switch rest := v[i:]; {
		case len(rest) == 0:
			return dots > 0 && isWords(v, true)
		case rest[0] == '(' || rest[0] == '[':
			return first && isRoot(v[:i]) || isWords(v[:i], false) && (bytes.ContainsAny(v[i:], ")]") || isCompound(v[:i]))
		case rest[0] == '.':
			i++
		case bytes.HasPrefix(rest, []byte("::")), bytes.HasPrefix(rest, []byte("->")), bytes.HasPrefix(rest, []byte("?.")):
			i += 2
		default:
			return dots > 0 && isWords(v[:i], true) && strings.IndexByte(")]};|&!?\\", rest[0]) >= 0
		}
		dots++
		if first && isRoot(v[:n]) {
			return true
		}
	}
	return false
}

// isCompound reports a name of several words.
func isCompound(name []byte) bool {
	for i := 1; i < len(name); i++ {
		if name[i] == '_' || name[i] == '.' || isUpper(name[i]) && !isUpper(name[i-1]) {
			return true
		}
	}
	return false
}

// isURL reports a URL. Other rules find secrets in it.
func isURL(v []byte) bool {
	i := 0
	for i < len(v) && (isLetter(v[i]) || isDigit(v[i]) || v[i] == '+' || v[i] == '-' || v[i] == '.') {
		i++
	}
	return i > 0 && bytes.HasPrefix(v[i:], []byte("://"))
}

// isPath reports a file path.
func isPath(v []byte) bool {
	return v[0] == '/' || v[0] == '~' || v[0] == '.' || v[0] == '$' || len(v) > 2 && isLetter(v[0]) && v[1] == ':' && v[2] == '\\'
}

// isRoot reports a usual name of an object with settings.
func isRoot(name []byte) bool {
	switch string(bytes.ToLower(name)) {
	case "process", "os", "env", "self", "this", "config", "cfg", "conf", "settings", "req", "request", "ctx", "context",
		"opts", "options", "args", "params", "props", "secrets", "vars", "var", "vault", "system", "deno", "import",
		"local", "module", "input", "inputs", "credentials", "creds", "viper", "environ", "environment":
		return true
	}
	return false
}

// isDigest reports a digest, such as sha256:9f86….
func isDigest(v []byte) bool {
	for _, name := range []string{"sha1", "sha256", "sha384", "sha512", "md5"} {
		if rest, ok := bytes.CutPrefix(v, []byte(name)); ok && len(rest) > 0 && (rest[0] == ':' || rest[0] == '-') {
			return true
		}
	}
	return false
}

// isUUID reports a UUID.
func isUUID(v []byte) bool {
	if len(v) < 36 || len(v) > 37 { // a full stop may follow
		return false
	}
	for i := range 36 {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash && v[i] != '-' || !dash && !isHex(v[i]) {
			return false
		}
	}
	return true
}

// isPlaceholder reports a usual placeholder for a secret.
func isPlaceholder(v []byte) bool {
	low := strings.ToLower(strings.TrimRight(string(v), ".,;:!?)]}"))
	for _, begin := range []string{
		"your-", "your_", "yourpass", "your pass", "your ", "xxxx", "****", "....", "____", "change",
	} {
		if strings.HasPrefix(low, begin) {
			return true
		}
	}
	switch low {
	case "password", "passphrase", "username", "required", "optional", "redacted", "undefined", "not-set", "not set", "example",
		"placeholder", "disabled", "(hidden)", "plaintext", "hidden", "mypassword", "(redacted)", "[redacted]", "nullable":
		return true
	}
	return false
}
