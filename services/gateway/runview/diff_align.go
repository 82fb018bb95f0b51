package runview

// maxAligned limits the work to pair the events of one node. Longer lists are paired by position.
const maxAligned = 4 << 20

// The scores of a pair. Many equal events matter more than many of one type.
const (
	sameType  = 1
	sameEvent = 1 << 20
)

// score returns what pairing two events is worth; 0: they are not paired.
func score(x, y *entry) int {
	switch {
	case x.typ != y.typ:
		return 0
	case x.sum == y.sum:
		return sameEvent
	default:
		return sameType
	}
}

// pairUp pairs the events of one node in order, so that the sum of the scores is the largest.
func pairUp(a, b []*entry) {
	for len(a) > 0 && len(b) > 0 && score(a[0], b[0]) == sameEvent {
		pair(a[0], b[0])
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && score(a[len(a)-1], b[len(b)-1]) == sameEvent {
		pair(a[len(a)-1], b[len(b)-1])
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a)*len(b) > maxAligned {
		for i := range min(len(a), len(b)) {
			if score(a[i], b[i]) > 0 {
				pair(a[i], b[i])
			}
		}
		return
	}
	walk(a, b, bestScores(a, b))
}

func pair(x, y *entry) { x.pair, y.pair = y, x }

// bestScores returns the largest sum for each pair of ends of the lists: row i has those of a[i:].
func bestScores(a, b []*entry) [][]int {
	best := make([][]int, len(a)+1)
	best[len(a)] = make([]int, len(b)+1)
	for i := len(a) - 1; i >= 0; i-- {
		best[i] = make([]int, len(b)+1)
		for j := len(b) - 1; j >= 0; j-- {
			best[i][j] = max(best[i+1][j], best[i][j+1])
			if s := score(a[i], b[j]); s > 0 {
				best[i][j] = max(best[i][j], s+best[i+1][j+1])
			}
		}
	}
	return best
}

// walk pairs events along the best scores, earlier ones first.
func walk(a, b []*entry, best [][]int) {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		s := score(a[i], b[j])
		switch {
		case s > 0 && best[i][j] == s+best[i+1][j+1]:
			pair(a[i], b[j])
			i, j = i+1, j+1
		case best[i][j] == best[i+1][j]:
			i++
		default:
			j++
		}
	}
}
