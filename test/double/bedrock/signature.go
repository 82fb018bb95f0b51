package bedrock

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// refusal checks the credentials of a request; empty if they are valid.
func refusal(r *http.Request, body []byte) (kind, message string) {
	authorization := r.Header.Get("Authorization")
	if token, ok := strings.CutPrefix(authorization, "Bearer "); ok {
		if slices.Contains([]string{HostKey, TenantKey}, token) {
			return "", ""
		}
		return "AccessDeniedException", "Authentication failed: the API Key is not valid: " + token
	}
	canonical, given := canonicalRequest(r, body)
	if given == "" {
		return "MissingAuthenticationToken", "Missing Authentication Token"
	}
	if want := signatureOf(r, canonical); given != want {
		return "InvalidSignatureException", "The request signature we calculated does not match the signature you provided. " +
			"The Canonical String for this request should have been '" + canonical + "'"
	}
	return "", ""
}

// canonicalRequest returns the request as it is signed (Signature Version 4), and its signature.
func canonicalRequest(r *http.Request, body []byte) (canonical, signature string) {
	rest, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	if !ok {
		return "", ""
	}
	parts := map[string]string{}
	for _, part := range strings.Split(rest, ", ") {
		name, value, _ := strings.Cut(part, "=")
		parts[name] = value
	}
	signed := strings.Split(parts["SignedHeaders"], ";")
	headers := ""
	for _, name := range signed {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = fmt.Sprint(r.ContentLength)
		}
		headers += name + ":" + strings.Join(strings.Fields(value), " ") + "\n"
	}
	var path []string // each segment is escaped once more
	for _, segment := range strings.Split(r.URL.EscapedPath(), "/") {
		path = append(path, strings.ReplaceAll(url.QueryEscape(segment), "+", "%20"))
	}
	query := strings.ReplaceAll(r.URL.Query().Encode(), "+", "%20")
	sum := sha256.Sum256(body)
	canonical = strings.Join([]string{
		r.Method, strings.Join(path, "/"), query, headers, strings.Join(signed, ";"), hex.EncodeToString(sum[:]),
	}, "\n")
	for _, must := range []string{"host", "x-amz-date"} {
		if !slices.Contains(signed, must) {
			return canonical, "unsigned"
		}
	}
	return canonical, parts["Signature"]
}

// maxSkew is how far a request's clock may be off.
const maxSkew = 5 * time.Minute

// signatureOf recomputes the signature of a request.
func signatureOf(r *http.Request, canonical string) string {
	date := r.Header.Get("X-Amz-Date")
	at, err := time.Parse("20060102T150405Z", date)
	if err != nil || time.Since(at).Abs() > maxSkew {
		return "outdated"
	}
	scope := date[:8] + "/" + Region + "/bedrock/aws4_request"
	if !strings.Contains(r.Header.Get("Authorization"), "Credential="+KeyID+"/"+scope+",") {
		return "of another key or region"
	}
	if token := r.Header.Get("X-Amz-Security-Token"); token != "" && token != Session {
		return "of another session"
	}
	sum := sha256.Sum256([]byte(canonical))
	mac := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		_, _ = h.Write([]byte(text))
		return h.Sum(nil)
	}
	key := mac(mac(mac(mac([]byte("AWS4"+SecretKey), date[:8]), Region), "bedrock"), "aws4_request")
	return hex.EncodeToString(mac(key, "AWS4-HMAC-SHA256\n"+date+"\n"+scope+"\n"+hex.EncodeToString(sum[:])))
}
