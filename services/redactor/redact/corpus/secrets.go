package corpus

import (
	"encoding/base64"
	"strings"
)

// secrets make a secret of each rule.
var secrets = []struct {
	rule string
	make func(s source) string
}{
	{"anthropic-key", func(s source) string { return "sk-ant-api03-EXAMPLE" + s.from(mixed+"-_", 83) + "AA" }},
	{"openai-key", func(s source) string { return s.pick("sk-", "sk-proj-", "sk-svcacct-") + s.from(mixed, 48) }},
	{"google-api-key", func(s source) string { return "AIza" + s.from(mixed, 35) }},
	{"google-oauth-token", func(s source) string { return "ya29.a0" + s.from(mixed+"-_", 120) }},
	{"aws-access-key", func(s source) string { return s.pick("AKIA", "ASIA") + s.from(upper+"234567", 16) }},
	{"github-token", func(s source) string { return s.pick("ghp_", "gho_", "ghs_") + s.from(mixed, 36) }},
	{
		"github-fine-grained-token",
		func(s source) string { return "github_pat_" + s.from(mixed, 22) + "_" + s.from(mixed, 59) },
	},
	{"gitlab-token", func(s source) string { return "glpat-" + s.from(mixed, 20) }},
	{"slack-token", func(s source) string {
		return s.pick("xoxb-", "xoxp-") + s.from(digits, 12) + "-" + s.from(digits, 12) + "-" + s.from(mixed, 24)
	}},
	{"stripe-key", func(s source) string { return s.pick("sk_live_", "sk_test_", "rk_live_") + s.from(mixed, 24) }},
	{"npm-token", func(s source) string { return "npm_" + s.from(mixed, 36) }},
	{"pypi-token", func(s source) string { return "pypi-AgEIcHlwaS5vcmc" + s.from(mixed+"-_", 100) }},
	{"sendgrid-key", func(s source) string { return "SG." + s.from(mixed, 22) + "." + s.from(mixed, 43) }},
	{"hugging-face-token", func(s source) string { return "hf_" + s.from(mixed, 34) }},
	{"docker-token", func(s source) string { return s.pick("dckr_pat_", "dckr_oat_") + s.from(mixed+"-_", 27) }},
	{"jwt", func(s source) string { return s.segment(12) + "." + s.segment(30) + "." + s.from(mixed+"-_", 43) }},
	{"gitlab-token", func(s source) string { return "glrt-" + s.from(mixed+"-_", 20) }},
	{"slack-token", func(s source) string {
		return "xapp-1-A" + s.from(upper+digits, 10) + "-" + s.from(digits, 13) + "-" + s.from(hexes, 64)
	}},
	{"jwt", func(s source) string {
		return s.segment(20) + "." + s.segment(300+s.IntN(300)) + "." + s.from(mixed+"-_", 342)
	}},
	{"private-key", func(s source) string { return s.block(s.pick(`\n`, `\r\n`, `\\n`)) }},
	{"private-key", func(s source) string { // cut off
		whole, _, _ := strings.Cut(s.block("\n"), "\n-----END")
		return whole
	}},
	{"private-key", func(s source) string {
		return "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\nComment: of the shop\n\n" + s.from(mixed+"+/", 64) + "\n" + s.from(mixed+"+/", 64) + "\n=" +
			s.from(mixed, 4) + "\n-----END PGP PRIVATE KEY BLOCK-----"
	}},
	{"private-key", func(s source) string {
		kind := s.pick("", "RSA ", "EC ", "OPENSSH ")
		var b strings.Builder
		b.WriteString("-----BEGIN " + kind + "PRIVATE KEY-----\n")
		for range 4 + s.IntN(8) {
			b.WriteString(s.from(mixed+"+/", 64) + "\n")
		}
		b.WriteString("-----END " + kind + "PRIVATE KEY-----")
		return b.String()
	}},
}

// block returns a private key with the given line ends.
func (s source) block(end string) string {
	b := "-----BEGIN PRIVATE KEY-----" + end
	for range 3 + s.IntN(20) {
		b += s.from(mixed+"+/", 64) + end
	}
	return b + s.from(mixed+"+/", 2+s.IntN(60)) + end + "-----END PRIVATE KEY-----"
}

// around are texts around a secret; %s is the secret.
var around = []string{
	"%s", "the key is %s.", "export KEY=%s", "curl -H 'X-Key: %s' https://api.example/v1",
	"I pasted %s here by mistake, please rotate it", "`%s`",
	`{"key": "%s", "n": 1}`, "first line\n%s\nlast line", "(%s)", "key:%s;",
	`{"log":"first\n%s\nlast"}`, `{"a":"{\"key\":\"%s\"}"}`, "https://shop.example/?k=%s&n=1",
	"https://shop.example/?k=%%22%s%%22", "<td>%s</td>", "- %s\n- 2", "> quoted: %s",
	"[REDACTED:other]%s", "%s[REDACTED:other]", "Schlüssel „%s“", "\t%s\r\n", "key=%s,n=1",
}

// within are secrets that are only recognizable by the text around them.
var within = []struct {
	rule, text string
	make       func(s source) string
}{
	{
		"azure-storage-key",
		"DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=%s;EndpointSuffix=core.example",
		func(s source) string { return s.from(mixed+"+/", 86) + "==" },
	},
	{
		"azure-storage-key", "Endpoint=sb://shop.example/;SharedAccessKeyName=Root;SharedAccessKey=%s",
		func(s source) string { return s.from(mixed+"+/", 43) + "=" },
	},
	{
		"url-password", "postgres://shop:%s@db.example:5432/shop",
		func(s source) string { return s.from(mixed+"!_-", 8+s.IntN(20)) },
	},
	{"url-password", "redis://:%s@cache.example/0 amqp://u:p", func(s source) string { return s.from(mixed, 16) }},
	{"url-password", "https://x-access-token:%s@git.example/shop.git", func(s source) string { return s.from(mixed, 40) }},
	{
		"authorization-header", "Authorization: Bearer %s",
		func(s source) string { return s.from(mixed+"-_", 32+s.IntN(40)) },
	},
	{
		"authorization-header", "Authorization: Bearer %s",
		func(s source) string { return s.pronounceable() + s.from(digits, 2) },
	},
	{
		"authorization-header", `"authorization": "Basic %s"`,
		func(s source) string { return base64.StdEncoding.EncodeToString([]byte("u:" + s.from(mixed, 18))) },
	},
	{"authorization-header", "authorization: %s", func(s source) string { return s.from(mixed, 32) }},
	{
		"bearer-token", "sent with Bearer %s and refused",
		func(s source) string { return s.from(mixed+"-_", 32+s.IntN(40)) },
	},
	{"bearer-token", "?auth=bearer%%20%s", func(s source) string { return s.from(hexes, 40) }},
	{"slack-webhook", "curl https://hooks.slack.com/services/%s", func(s source) string {
		return "T" + s.from(upper+digits, 8) + "/B" + s.from(upper+digits, 8) + "/" + s.from(mixed, 24)
	}},
	{"assignment", "password = %s", func(s source) string { return s.from(mixed+"!#%&*-_", 14+s.IntN(20)) }},
	{"assignment", `api_key: "%s"`, func(s source) string { return s.from(mixed, 24+s.IntN(16)) }},
	{"assignment", "CLIENT_SECRET=%s", func(s source) string { return s.from(mixed, 32) }},
	{"assignment", `{"config": "DB_PASSWORD=%s"}`, func(s source) string { return s.from(mixed, 20) }},
	{"assignment", `{"user":"shop","password":"%s"}`, func(s source) string { return s.pronounceable() }},
	{
		"assignment", `{"log":"{\"password\":\"%s\"}"}`,
		func(s source) string { return s.pronounceable() + s.from(digits, 2) },
	},
	{
		"assignment", "password: %s",
		func(s source) string { return s.from(mixed+"!#%&*", 7) + s.from(digits, 1+s.IntN(4)) },
	},
	{"assignment", "clientSecret: '%s',", func(s source) string { return s.from(hexes, 32) }},
	{"assignment", "export DB_PASS=%s", func(s source) string { return s.pronounceable() + s.from(digits, 2) }},
	{
		"assignment", "Server=db;User Id=sa;Pwd=%s;",
		func(s source) string { return s.pronounceable() + "!" + s.from(digits, 3) },
	},
	{
		"assignment", `config["db_password"] = "%s"`,
		func(s source) string { return s.pronounceable() + "-" + s.pronounceable() },
	},
	{"assignment", "<dbPassword>%s</dbPassword>", func(s source) string { return s.pronounceable() + s.from(digits, 2) }},
	{
		"assignment", "mysqldump --user shop --password %s shop",
		func(s source) string { return s.pronounceable() + s.from(digits, 2) },
	},
	{"assignment", "user=shop&password%%3D%s", func(s source) string { return s.from(mixed, 12) }},
	{"assignment", "&quot;apiKey&quot;:&quot;%s&quot;", func(s source) string { return s.from(mixed, 32) }},
	{
		"assignment", `passphrase: "%s"`,
		func(s source) string { return s.pronounceable() + " " + s.pronounceable() + " " + s.pronounceable() },
	},
	{"assignment", "AWS_SECRET_ACCESS_KEY=%s", func(s source) string { return s.from(mixed+"+/", 40) }},
	{"assignment", "refreshToken=%s", func(s source) string { return s.from(mixed, 20) }},
	{
		"assignment", "the password is %s, by the way",
		func(s source) string { return s.pronounceable() + s.from(digits, 2) },
	},
	// The rules do not find these, or not always. They count against recall.
	{
		"assignment", "the password of the shop was %s, by the way",
		func(s source) string { return s.pronounceable() + s.from(digits, 2) },
	},
	{"assignment", "password: %s", func(s source) string { return s.pronounceable() }},
	{"assignment", "secret_key: %s", func(s source) string { return s.from(lower, 20) }},
}

// pronounceable returns a typical password of a person.
func (s source) pronounceable() string {
	var b strings.Builder
	for range 4 + s.IntN(2) {
		b.WriteString(s.pick("b", "d", "f", "k", "l", "m", "n", "r", "s", "t") + s.pick("a", "e", "i", "o", "u"))
	}
	return b.String()
}
