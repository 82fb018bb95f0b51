package corpus

import "fmt"

// harmless make texts without a secret that resemble the rules.
var harmless = []func(s source) string{
	func(s source) string { return "commit " + s.from(hexes, 40) + " fixes the token parser" },
	func(s source) string { return "sha256:" + s.from(hexes, 64) },
	func(s source) string {
		return fmt.Sprintf("run_%s of workflow triage, request %s-%s-4%s-a%s-%s", s.from(lower+digits, 26), s.from(hexes, 8), s.from(hexes, 4), s.from(hexes, 3), s.from(hexes, 3), s.from(hexes, 12))
	},
	func(s source) string {
		return "order WL-" + s.from(digits, 6) + " was charged twice, card ending in " + s.from(digits, 4)
	},
	func(s source) string {
		return "the password must have at least " + s.from("123456789", 1) + " characters"
	},
	func(s source) string {
		return "token count: " + s.from(digits, 5) + ", secret sauce: tomatoes and basil"
	},
	func(s source) string { return "password: ********************" },
	func(s source) string { return "api_key = <your-key-here>, or set ${API_KEY}" },
	func(s source) string { return "password: [REDACTED:db-" + s.from(lower, 5) + "]" },
	func(s source) string {
		return "see https://docs.example/" + s.from(lower, 12) + "/" + s.from(lower, 9) + "?page=" + s.from(digits, 3)
	},
	func(s source) string {
		return "mail to " + s.from(lower, 7) + "@" + s.from(lower, 8) + ".example about ssh://git@host.example/repo"
	},
	func(s source) string {
		return "func (s *" + s.from(upper, 1) + s.from(lower, 8) + ") token() (string, error) { return s.next(), nil }"
	},
	func(s source) string {
		return "the sk-learn pipeline, an AKIA-like word, ghp_ alone, and eyJ of nothing"
	},
	func(s source) string {
		return "task-" + s.from(lower, 6) + "-" + s.from(lower, 7) + "-" + s.from(lower, 5) + " of desk-" + s.from(digits, 4)
	},
	func(s source) string { return "const tokenLifetime = 15 * time.Minute // " + s.from(lower, 12) },
	func(s source) string { return `{"token_type": "bearer", "expires_in": 3600, "scope": "read"}` },
	func(s source) string {
		return "secretary: Mrs. " + s.from(upper, 1) + s.from(lower, 9) + ", passwd(5) is a manual page"
	},
	func(s source) string {
		return "-----BEGIN CERTIFICATE-----\n" + s.from(mixed+"+/", 64) + "\n-----END CERTIFICATE-----"
	},
	func(s source) string {
		return "-----BEGIN PUBLIC KEY-----\n" + s.from(mixed+"+/", 64) + "\n-----END PUBLIC KEY-----"
	},
	func(s source) string { return "data:image/png;base64," + s.from(mixed+"+/", 200) },
	func(s source) string { return "authorization: see chapter 4; bearer of bad news" },
	func(s source) string { return "password: changechangechange" },
	func(s source) string { return "skip-the-line-and-go-to-the-front-of-the-queue-please" },
	func(s source) string { return "sk-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa is a placeholder" },
	func(s source) string { return "correlationId: token:" + s.uuid() },
	func(s source) string { return `{"token":"` + s.uuid() + `","n":1}` },
	func(s source) string { return "GET /v1/runs?page_token=run_" + s.from(lower+digits, 26) + "&limit=10" },
	func(s source) string { return `{"nextPageToken":"` + s.from(mixed, 40) + `"}` },
	func(s source) string { return "token=sha256:" + s.from(hexes, 64) },
	func(s source) string { return "secret: sha512-" + s.from(mixed+"+/", 86) + "==" },
	func(s source) string { return "apiKey: process.env." + s.from(upper, 6) + "_KEY," },
	func(s source) string { return `api_key=os.environ["` + s.from(upper, 8) + `_KEY"]` },
	func(s source) string { return "password = getPasswordFromVault(ctx)" },
	func(s source) string {
		return `token := tokenFromHeader(r, "X-` + s.from(upper, 1) + s.from(lower, 4) + `")`
	},
	func(s source) string {
		return "sk-learn-compatible-" + s.pronounceable() + "-and-" + s.pronounceable() + "-estimators"
	},
	func(s source) string {
		return "password=${" + s.from(upper, 6) + "_PASSWORD}, or {{ .Values.password }}"
	},
	func(s source) string {
		return "--- PASS: TestRun_" + s.from(upper, 1) + s.from(lower, 7) + s.from(digits, 2) + " (0.00s)"
	},
	func(s source) string {
		return "OLDPWD=/home/" + s.from(lower, 6) + s.from(digits, 2) + "/" + s.from(lower, 8)
	},
	func(s source) string { return `{"password":"must have at least 8 characters"}` },
	func(s source) string { return `{"properties":{"password":{"type":"string","minLength":12}}}` },
	func(s source) string { return "password: [REDACTED:sk-" + s.from(mixed, 30) + "] token=[REDACTED]" },
	func(s source) string { return "Authorization: Bearer ${TOKEN}, Authorization: Bearer <token>" },
	func(s source) string { return `WWW-Authenticate: Bearer realm="` + s.from(lower, 9) + `"` },
	func(s source) string {
		return "postgres://shop:${DB_PASSWORD}@db.example/shop and http://localhost:8080/a@b"
	},
	func(s source) string { return "tiktoken:cl" + s.from(digits, 3) + "k_base_v" + s.from(digits, 3) },
	func(s source) string { return "secret: /run/secrets/" + s.pronounceable() + "/token" },
	func(s source) string {
		return "-----BEGIN PRIVATE KEY-----\nMIIE...\n-----END PRIVATE KEY----- is how it begins"
	},
	func(s source) string { return "data:image/png;base64," + s.from(mixed+"+/", 800) },
	func(s source) string { return "bypass=" + s.from(mixed, 14) + ", compass: " + s.from(mixed, 12) },
	func(s source) string { return "skipped: task-" + s.from(hexes, 8) + " (secretName: of-the-cluster)" },
	// The rules match these. They count against precision.
	func(s source) string { return "token: " + s.from(hexes, 40) + " is the commit" },
	func(s source) string {
		return `input name="password" password="field-` + s.from(digits, 3) + `-of-the-form"`
	},
}

func (s source) uuid() string {
	return fmt.Sprintf("%s-%s-4%s-a%s-%s", s.from(hexes, 8), s.from(hexes, 4), s.from(hexes, 3), s.from(hexes, 3), s.from(hexes, 12))
}
