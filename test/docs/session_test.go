package docs

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/freeport"
	"waybill.dev/waybill/test/harness"
)

// pageTimeout limits the time of a page, including its hosts' starts.
const pageTimeout = 90 * time.Second

// prelude starts every session. The functions replace the commands of a reader with a checkout and
// a second terminal.
const prelude = `set -euo pipefail
# Serving goes on in the background; what it says is shown once it serves.
serving() { # serving NAME [WHAT IT SAYS LAST] -- COMMAND...
	local name=$1 last= began=$SECONDS pid; shift
	[ "$1" = -- ] || { last=$1; shift; }
	shift
	if [ -e "$STATE/$name.pid" ]; then
		pid=$(cat "$STATE/$name.pid")
		kill -INT "$pid" && wait "$pid" || true
	fi
	rm -f "$STATE/$name.ready"
	"$WAYBILL" "$@" --ready-file "$STATE/$name.ready" >"$STATE/$name.log" 2>&1 &
	pid=$!
	echo "$pid" >"$STATE/$name.pid"
	until [ -s "$STATE/$name.ready" ] && { [ -z "$last" ] || grep -q -- "$last" "$STATE/$name.log"; }; do
		if ! kill -0 "$pid" || [ $((SECONDS - began)) -gt 60 ]; then cat "$STATE/$name.log"; return 1; fi
		sleep 0.02
	done
	cat "$STATE/$name.log"
}
waybill() {
	case "${1-} $*" in
	*--help*) "$WAYBILL" "$@" ;;
	dev*--demo*) serving host 'Ctrl-C stops' -- "$@" --http-addr "127.0.0.1:$PORT_8080" --grpc-addr "127.0.0.1:$PORT_9090" ;;
	dev*) serving host -- "$@" --http-addr "127.0.0.1:$PORT_8080" --grpc-addr "127.0.0.1:$PORT_9090" ;;
	envelope*accept*) "$WAYBILL" "$@" --addr "127.0.0.1:$PORT_9091" ;;
	serve*acceptor*) serving acceptor -- "$@" --grpc-addr "127.0.0.1:$PORT_9091" ;;
	*) "$WAYBILL" "$@" ;;
	esac
}
# What the host refuses fails a block of plain shell; a console shows it.
curl() {
	if [ "$block" = sh ]; then command curl --fail-with-body "$@"; else command curl "$@"; fi
}
# The host that 'make run' starts is built already.
make() {
	local line
	while read -r line; do eval "$line"; done < <(command make -n --no-print-directory -C "$REPO" "$@" | grep -v '^go build' | sed 's,^bin/,,')
}
`

// ports are the ports that the pages use.
var ports = []string{"8080", "9090", "9091", "9100"}

// session is one page's shell.
type session struct {
	page    page
	dir     string            // for all of its files
	ports   map[string]string // by the page's port
	script  strings.Builder
	printed []printed // to compare
	ported  *strings.Replacer
}

// printed is a command of a console block, with the output that the page shows.
type printed struct {
	line       int
	file, want string
}

var startsHost = regexp.MustCompile(`(?m)\bwaybill (dev|serve)\b|\bmake run\b`)

// newSession prepares the blocks of a page, for the host they start, or the shared one.
func newSession(t *testing.T, p page, blocks []block) *session {
	t.Helper()
	s := &session{page: p, dir: t.TempDir(), ports: map[string]string{}}
	own := false
	for _, b := range blocks {
		own = own || startsHost.MatchString(b.text)
	}
	s.choosePorts(t, own)
	for _, dir := range []string{"work", "state", "home"} {
		require.NoError(t, os.Mkdir(filepath.Join(s.dir, dir), 0o700))
	}
	repo, err := filepath.Abs(root)
	require.NoError(t, err)
	for _, dir := range []string{"examples", "deploy"} { // pages name files of the repository
		require.NoError(t, os.Symlink(filepath.Join(repo, dir), filepath.Join(s.dir, "work", dir)))
	}
	s.script.WriteString(prelude)
	fmt.Fprintf(&s.script, "cd %q\n", filepath.Join(s.dir, "work"))
	for _, b := range blocks {
		if b.lang == "console" {
			s.console(t, b)
		} else {
			s.command(t, b, 0, b.text)
		}
	}
	return s
}

func (s *session) choosePorts(t *testing.T, own bool) {
	t.Helper()
	var pairs []string
	for _, port := range ports {
		s.ports[port] = freeport.Take(t)
	}
	if !own {
		h := shared.Host(t)
		_, s.ports["8080"], _ = net.SplitHostPort(strings.TrimPrefix(h.HTTP, "http://"))
		_, s.ports["9090"], _ = net.SplitHostPort(h.GRPC)
	}
	for port, free := range s.ports {
		pairs = append(pairs, "localhost:"+port, "127.0.0.1:"+free, "127.0.0.1:"+port, "127.0.0.1:"+free)
	}
	s.ported = strings.NewReplacer(append(pairs, "bin/waybill ", "waybill ")...)
}

// command appends a piece of script that runs in the page's one shell. The exit status of a console
// command is left for the next one: `echo $?` shows it.
func (s *session) command(t *testing.T, b block, n int, text string) (out string) {
	t.Helper()
	file := filepath.Join(s.dir, "state", fmt.Sprintf("%d-%d", b.line, n))
	require.NoError(t, os.WriteFile(file+".sh", []byte(s.ported.Replace(text)), 0o600))
	fmt.Fprintf(&s.script, "echo %d >%q; block=%s\n", b.line, filepath.Join(s.dir, "at"), b.lang)
	fmt.Fprintf(&s.script, ". %q >%q 2>&1", file+".sh", file+".out")
	if b.lang == "console" {
		s.script.WriteString(" && status=0 || status=$?")
	}
	s.script.WriteString("\n")
	return file + ".out"
}

// console splits a block into commands and their outputs.
func (s *session) console(t *testing.T, b block) {
	t.Helper()
	var commands, outputs []string
	goesOn := false
	for _, line := range strings.Split(strings.TrimSuffix(b.text, "\n"), "\n") {
		text, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case isCommand:
			commands, outputs = append(commands, text+"\n"), append(outputs, "")
		case goesOn:
			commands[len(commands)-1] += line + "\n"
		default:
			require.NotEmpty(t, commands, "%s:%d: want a command behind `$ ` first", s.page.path, b.line)
			outputs[len(outputs)-1] += line + "\n"
			continue
		}
		goesOn = strings.HasSuffix(line, `\`)
	}
	for i, text := range commands {
		if text == "echo $?\n" {
			text = "echo $status\n"
		}
		out := s.command(t, b, i, text)
		s.printed = append(s.printed, printed{b.line, out, outputs[i]})
	}
}

// run executes the page and returns what is wrong with it.
func (s *session) run(t *testing.T) error {
	t.Helper()
	env := s.env(t)
	ctx, cancel := context.WithTimeout(t.Context(), pageTimeout)
	defer cancel()
	script := filepath.Join(s.dir, "page.sh")
	require.NoError(t, os.WriteFile(script, []byte(s.script.String()), 0o600))
	cmd := exec.CommandContext(ctx, "bash", script)
	cmd.Env = env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second                                                          // a host left running keeps the output open
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // with its hosts
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	err := cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the hosts it started, if any
	if err != nil {
		return s.failure(err, out.String())
	}
	for _, p := range s.printed {
		got, err := os.ReadFile(p.file)
		require.NoError(t, err)
		text := s.documented(string(got))
		if !regexp.MustCompile(pattern(p.want)).MatchString(text) {
			return fmt.Errorf("%s:%d: the page shows\n%s\nthe command prints\n%s", s.page.path, p.line, p.want, text)
		}
	}
	return nil
}

// failure names the failed block and its output.
func (s *session) failure(err error, said string) error {
	at, _ := os.ReadFile(filepath.Join(s.dir, "at")) // empty if no block has started
	line := strings.TrimSpace(string(at))
	files, _ := filepath.Glob(filepath.Join(s.dir, "state", line+"-*.out"))
	for _, f := range files {
		text, _ := os.ReadFile(f) // as much as exists
		said += string(text)
	}
	return fmt.Errorf("%s:%s: the block failed: %w\n%s", s.page.path, line, err, said)
}

// env is the environment of a new user: no keys, no settings.
func (s *session) env(t *testing.T) []string {
	t.Helper()
	repo, err := filepath.Abs(root)
	require.NoError(t, err)
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(s.dir, "home"), "TMPDIR=" + s.dir, "NO_COLOR=1", "LC_ALL=C.UTF-8",
		"WAYBILL=" + harness.Binary(t), "REPO=" + repo, "STATE=" + filepath.Join(s.dir, "state"),
	}
	env = append(env, "WAYBILL_URL=http://127.0.0.1:"+s.ports["8080"])
	for port, free := range s.ports {
		env = append(env, "PORT_"+port+"="+free)
	}
	return env
}

// documented replaces the actual ports by the page's, and ends the last line.
func (s *session) documented(out string) string {
	if out != "" && !strings.HasSuffix(out, "\n") {
		out += "\n"
	}
	for port, free := range s.ports {
		out = strings.ReplaceAll(out, "127.0.0.1:"+free, "127.0.0.1:"+port)
	}
	return strings.ReplaceAll(out, "\t", "    ")
}

// varies matches values that differ between runs: ids, times, durations. `…` is anything the page
// omits.
var varies = []string{
	`(?:run|key|env|int)_[0-9a-z]{6,}`,
	`\d{4}-\d\d-\d\dT[0-9:.]+Z`,
	`\d+ ms`,
	`\b\d\d:\d\d:\d\d\.\d{3}\b`,
	`\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`,
}

var varying = regexp.MustCompile(`…|` + strings.Join(varies, "|"))

// pattern returns the pattern that printed text must match.
func pattern(want string) string {
	if strings.TrimSpace(want) == "" {
		return `\A\s*\z`
	}
	var b strings.Builder
	b.WriteString(`\A`)
	for _, line := range strings.Split(strings.TrimRight(want, "\n"), "\n") {
		if strings.TrimSpace(line) == "…" {
			b.WriteString(`(?:.*\n)*?`)
			continue
		}
		line = strings.TrimRight(line, " ")
		at := 0
		for _, m := range varying.FindAllStringIndex(line, -1) {
			b.WriteString(regexp.QuoteMeta(line[at:m[0]]))
			b.WriteString(anyOf(line[m[0]:m[1]]))
			at = m[1]
		}
		b.WriteString(regexp.QuoteMeta(line[at:]) + ` *\n`)
	}
	b.WriteString(`\n*\z`)
	return b.String()
}

// anyOf matches every value allowed in place of a text.
func anyOf(text string) string {
	for _, v := range varies {
		if regexp.MustCompile(`\A` + v + `\z`).MatchString(text) {
			return v
		}
	}
	return `.*`
}
