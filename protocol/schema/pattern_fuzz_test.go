package schema

import (
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
	"github.com/stretchr/testify/require"
)

// FuzzPattern: a pattern is rejected with a reason, or matches within its limits. Where both engines
// can read it, they agree.
func FuzzPattern(f *testing.F) {
	for _, p := range []string{
		`^(?!\.)[a-z]+$`, `\s\S.[^.]`, `\u{1f600}|\ud83d\ude00`, `\p{Script=Greek}+`, `^.{1,2000}$`, `(a+)+$`, `(.)\1`, `[\s\S]`, `\cA\/`, `(?<n>a)\k<n>`,
		`[^\s-x]`, `\bfoo\b`, `a{2}|b*?`, `^$`, `\d\D\w\W`,
	} {
		f.Add(p, "ab \u00a0\u2028\n😀")
	}
	f.Fuzz(func(t *testing.T, p, text string) {
		if !utf8.ValidString(p) || !utf8.ValidString(text) || len(text) > 1<<10 {
			return
		}
		re, err := Pattern(p)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		require.Equal(t, p, re.String())
		began := time.Now()
		ok := re.MatchString(text)
		require.Less(t, time.Since(began), 5*time.Second)
		linear, is := re.(*pattern)
		if !is || hasGoSyntax(p) {
			return
		}
		other, err := regexp2.Compile(p, regexp2.ECMAScript|regexp2.Unicode)
		if err != nil {
			return // Go reads some more, such as \A
		}
		other.MatchTimeout = maxMatchTime
		if want, err := other.MatchString(text); err == nil {
			require.Equal(t, want, ok, "%q is %q", p, linear.Regexp.String())
		}
	})
}
