package redact_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/redactor/redact"
)

// filled inserts key material into a text, so that this file contains none.
func filled(text string) string {
	return strings.NewReplacer("<36>", random(urlSafe[:62], 36), "<20>", random(urlSafe[:62], 20)).Replace(text)
}

func TestShapes_KeepHarmlessText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"correlationId: token:0b9f3c5e-7a1d-4e2b-9c8f-1a2b3c4d5e6f",
		"GET /v1/runs?page_token=run_06gzs9m3s1xq16m6ak670468r0&limit=10",
		"nextPageToken: run_06gzs9m3s1xq16m6ak670468r0",
		"token=sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"image@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"apiKey: process.env.X_KEY,",
		`const secret = process.env.X_KEY || "";`,
		"password = getPasswordFromVault(ctx)",
		`password := getPasswordFromVault(ctx, "db")`,
		`api_key=os.environ["OPENAI_API_KEY"]`,
		"use sk-learn-compatible-estimators-and-transformers for it",
		"sk-learn-compatible-v2-pipeline-2024",
		"password: string; token: string;",
		"--- PASS: TestStream_Pieces_V2_x86 (0.00s)",
		"pwd=/home/user1/projects/x9",
		"secret: /run/secrets/db_password",
		`WWW-Authenticate: Bearer realm="example"`,
		"Bearer authentication-is-required-here",
		"stop_token: <|endoftext|>, pad_token=aB3dE5gH7jK9mN1p",
		"password={{ .Values.db.password }} or ${DB_PASSWORD} or $DB_PASSWORD",
		"postgres://user:${DB_PASS}@host/db",
		"http://localhost:8080/path@x",
		`secret: "correct horse battery staple"`,
		"the password is required, the password is at least 8 characters long, the token is invalid",
		"passwordless: enabled123456, bypass=abc12345def, compass: north12345",
		"-----BEGIN PGP PRIVATE KEY BLOCK----- is how it begins",
		"-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END CERTIFICATE-----",
	} {
		out, n := redact.DefaultShapes().Replace(text)
		require.Equal(t, text, out)
		require.Zero(t, n)
	}
}

var marks = regexp.MustCompile(`\[REDACTED:shape\.[a-z-]+\]`)

func TestShapes_FindValuesByTheirName(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{\"password\":\"hunter22\"}`:                   `{\"password\":\"#\"}`,
		`{\\\"password\\\":\\\"hunter22\\\"}`:           `{\\\"password\\\":\\\"#\\\"}`,
		"clientSecret: aB3dE5gH7jK9mN1p":                "clientSecret: #",
		"DB_PASS='correct-horse'":                       "DB_PASS='#'",
		"Server=x;User=sa;pwd=hunter22;":                "Server=x;User=sa;pwd=#;",
		"PGPASSWORD=hunter22":                           "PGPASSWORD=#",
		"the password: hunter22, please":                "the password: #, please",
		"line\\npassword=hunter22":                      "line\\npassword=#",
		`passphrase: "correct horse battery staple"`:    `passphrase: "#"`,
		`password: "a \"quoted\" hunter22 word" + x`:    `password: "#" + x`,
		"<password>hunter22</password>":                 "<password>#</password>",
		"mysql --password hunter22 -u root":             "mysql --password # -u root",
		"password%3Dhunter22 and on":                    "password%3D# and on",
		`config["db_password"] = "hunter22"`:            `config["db_password"] = "#"`,
		"the password is hunter22, by the way":          "the password is #, by the way",
		"password => 'hunter22'":                        "password => '#'",
		"AWS_SECRET_ACCESS_KEY=<36>/abc ":               "AWS_SECRET_ACCESS_KEY=# ",
		"mysql://root:hunter22@db:3306/x":               "mysql://root:#@db:3306/x",
		"https://ghp_<36>:x-oauth-basic@git.example/":   "https://#:#@git.example/",
		"Authorization: Bearer aB3dE5":                  "Authorization: Bearer #",
		"authorization: <20>":                           "authorization: #",
		"sent as bearer%20<20> there":                   "sent as bearer%20# there",
		"sb://x/;SharedAccessKey=<36><36>=;Entity=q":    "sb://x/;SharedAccessKey=#;Entity=q",
		"hooks.slack.com/services/T0/B0/<20> ":          "hooks.slack.com/services/# ",
		"xapp-1-A0-123-<36>.":                           "#.",
		"glrt-<20> dckr_pat_<20>abcdefg":                "# #",
		"token=ghp_<36>":                                "token=#",
		"-----BEGIN PRIVATE KEY-----\n<36>\nSorry I am": "#\nSorry I am",
	} {
		out, n := redact.DefaultShapes().Replace(filled(in))
		require.Equal(t, filled(want), marks.ReplaceAllString(out, "#"), in)
		require.Equal(t, strings.Count(want, "#"), n, in)
	}
}

// A document on one line is searched like any other, at any size.
func TestShapes_SearchTextWithoutSpaces(t *testing.T) {
	t.Parallel()
	key := filled("ghp_<36>")
	for name, text := range map[string]string{
		"minified JSON": `{"a":[` + strings.Repeat(`{"n":1},`, 8000) + `{"k":"` + key + `"}]}`,
		"a blob":        random(urlSafe[:62], 30_000) + "," + key,
	} {
		out, n := redact.DefaultShapes().Replace(text)
		require.Equal(t, 1, n, name)
		require.Equal(t, strings.Replace(text, key, "[REDACTED:shape.github-token]", 1), out, name)
	}
	blob := random(urlSafe[:62]+"+/", 1<<20)
	_, n := redact.DefaultShapes().Replace(blob)
	require.Zero(t, n, "an image is no secret")
}
