// Package promptkey computes the cache key of a model request. Requests with the same key may
// share an answer (OpenWOP host contract §7.3, recipe v2).
//
// The key is the SHA-256 of a canonical document (RFC 8785), in lower-case hexadecimal. It
// is not a secret and grants no access: a cache must hold the answers of each tenant apart.
package promptkey

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/gowebpki/jcs"

	"waybill.dev/waybill/protocol/strictjson"
)

// Recipe names the algorithm; a different recipe yields different keys.
const Recipe = "openwop-semantic-request-v2"

// maxBytes limits a request.
const maxBytes = 8 << 20

// content lists the members of a request that affect the answer.
var content = []string{
	"messages", "tools", "temperature", "topP", "topK", "responseFormat", "maxOutputTokens", "stop",
	"seed", "safetySettings",
}

type object = map[string]json.RawMessage

// Of returns the key of a request: provider, model, the members of the recipe, and providerOptions.
// Other members are those of the transport, such as ids, timeouts and credentials,
// and are ignored; an option of the provider belongs into providerOptions, or is named
// vendor.PROVIDER.OPTION.
func Of(doc []byte) (string, error) {
	form, err := Canonical(doc)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(form)
	return hex.EncodeToString(sum[:]), nil
}

// Canonical returns the document whose digest is the key of a request. In it, the members of the
// recipe are in an object of their own.
func Canonical(doc []byte) ([]byte, error) {
	if err := strictjson.Check(doc, strictjson.Limits{MaxBytes: maxBytes, MaxDepth: 128}); err != nil {
		return nil, err
	}
	given, err := members("", doc)
	if err != nil {
		return nil, err
	}
	provider, err := text("/provider", given["provider"])
	if err != nil {
		return nil, err
	}
	if _, err := text("/model", given["model"]); err != nil {
		return nil, err
	}
	if r := given["recipe"]; !absent(r) && string(r) != `"`+Recipe+`"` {
		return nil, fmt.Errorf("/recipe: want %s", Recipe)
	}
	provider = strings.ToLower(provider)
	request := object{}
	for _, name := range content {
		if v := given[name]; !absent(v) {
			request[name] = v
		}
	}
	if err := normalize(request); err != nil {
		return nil, err
	}
	options, err := providerOptions(provider, given)
	if err != nil {
		return nil, err
	}
	out := object{
		"recipe":   strictjson.Render(Recipe),
		"provider": strictjson.Render(provider),
		"model":    given["model"],
		"request":  strictjson.Render(request),
	}
	if len(options) > 0 {
		out["providerOptions"] = strictjson.Render(options)
	}
	return jcs.Transform(strictjson.Render(out))
}

// vendorPrefix begins the name of a provider's option.
const vendorPrefix = "vendor."

// providerOptions returns the options by their full names. None is dropped, because each may affect
// the answer.
func providerOptions(provider string, given object) (object, error) {
	options := object{}
	for name, v := range given {
		if strings.HasPrefix(name, vendorPrefix) && !absent(v) {
			options[name] = v
		}
	}
	more := given["providerOptions"]
	if absent(more) {
		return options, nil
	}
	own, err := members("/providerOptions", more)
	if err != nil {
		return nil, err
	}
	for name, v := range own {
		if absent(v) {
			continue
		}
		full := option(provider, name)
		if _, twice := options[full]; twice { // one value would be dropped silently
			return nil, fmt.Errorf("/providerOptions/%s: the option %s is given twice", name, full)
		}
		options[full] = v
	}
	return options, nil
}

// option returns the name of a provider option in the canonical document.
func option(provider, name string) string {
	if strings.HasPrefix(name, vendorPrefix) {
		return name
	}
	return vendorPrefix + provider + "." + name
}

// normalize rewrites the request's members into the shape of the recipe.
func normalize(request object) error {
	for name, shape := range map[string]func(json.RawMessage) (json.RawMessage, error){
		"messages": messages, "tools": tools, "responseFormat": format,
	} {
		v, given := request[name]
		if !given && name != "messages" {
			continue
		}
		v, err := shape(v)
		if err != nil {
			return err
		}
		if request[name] = v; v == nil {
			delete(request, name)
		}
	}
	return nil
}

var roles = []string{"system", "user", "assistant", "tool"}

// messages keeps order and content.
func messages(doc json.RawMessage) (json.RawMessage, error) {
	list, err := objects("/messages", doc)
	if err != nil {
		return nil, err
	}
	for i, m := range list {
		at := fmt.Sprintf("/messages/%d", i)
		if err := only(at, m, "role", "content", "name", "toolCallId"); err != nil {
			return nil, err
		}
		if role, err := text(at+"/role", m["role"]); err != nil || !slices.Contains(roles, role) {
			return nil, fmt.Errorf("%s/role: want one of %s", at, strings.Join(roles, ", "))
		}
		if c := m["content"]; absent(c) || c[0] != '"' && c[0] != '[' {
			return nil, fmt.Errorf("%s/content: want a string or an array of blocks", at)
		}
	}
	return strictjson.Render(list), nil
}

// tools sorts the tools by name, in UTF-16 code units. An empty list counts as absent.
func tools(doc json.RawMessage) (json.RawMessage, error) {
	list, err := objects("/tools", doc)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, nil
	}
	keys := make(map[*json.RawMessage][]uint16, len(list))
	sorted := make([]*json.RawMessage, 0, len(list))
	for i, t := range list {
		name, err := text(fmt.Sprintf("/tools/%d/name", i), t["name"])
		if err != nil {
			return nil, err
		}
		tool := strictjson.Render(t)
		keys[&tool] = utf16.Encode([]rune(name))
		sorted = append(sorted, &tool)
	}
	slices.SortStableFunc(sorted, func(a, b *json.RawMessage) int { return slices.Compare(keys[a], keys[b]) })
	return strictjson.Render(sorted), nil
}

var formats = []string{"text", "json", "tool_call"}

func format(doc json.RawMessage) (json.RawMessage, error) {
	const at = "/responseFormat"
	f, err := members(at, doc)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(f, func(_ string, v json.RawMessage) bool { return absent(v) })
	if err := only(at, f, "type", "schema"); err != nil {
		return nil, err
	}
	if typ, err := text(at+"/type", f["type"]); err != nil || !slices.Contains(formats, typ) {
		return nil, fmt.Errorf("%s/type: want one of %s", at, strings.Join(formats, ", "))
	}
	return strictjson.Render(f), nil
}

// absent reports whether an optional member is missing; null counts as missing.
func absent(v json.RawMessage) bool { return len(v) == 0 || string(v) == "null" }

func members(at string, doc json.RawMessage) (object, error) {
	var m object
	if absent(doc) || json.Unmarshal(doc, &m) != nil {
		return nil, fmt.Errorf("%s: want an object", place(at))
	}
	return m, nil
}

// objects reads an array of objects and removes absent members.
func objects(at string, doc json.RawMessage) ([]object, error) {
	var list []object
	if absent(doc) || json.Unmarshal(doc, &list) != nil {
		return nil, fmt.Errorf("%s: want an array of objects", at)
	}
	for i, o := range list {
		if o == nil {
			return nil, fmt.Errorf("%s/%d: want an object", at, i)
		}
		maps.DeleteFunc(o, func(_ string, v json.RawMessage) bool { return absent(v) })
	}
	return list, nil
}

func only(at string, m object, known ...string) error {
	for name := range m {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%s/%s: unknown member; known are %s", at, name, strings.Join(known, ", "))
		}
	}
	return nil
}

func text(at string, v json.RawMessage) (string, error) {
	var s string
	if absent(v) || json.Unmarshal(v, &s) != nil || s == "" {
		return "", fmt.Errorf("%s: want a non-empty string", at)
	}
	return s, nil
}

func place(at string) string {
	if at == "" {
		return "the request"
	}
	return at
}
