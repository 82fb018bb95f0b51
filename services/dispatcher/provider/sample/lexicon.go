package sample

import "strings"

// topics lists words that speak of a label although they are not in its name:
// a mail about a refund is about billing. One line each, the label's words
// first, then a colon. It is what makes the sample's choices look like choices;
// a label that is not here is still found by its own words.
const topics = `
billing finance invoice payment: invoice refund payment pay paid charge price cost bill subscription card receipt fee overcharged money
refund return: refund money back return reimburse
technical tech bug defect incident outage support: error crash bug broken fail failure login install slow server exception timeout freeze screen work
account access login: login password signin locked account profile username access reset
shipping delivery logistics: package parcel deliver delivery arrive ship shipment track courier late address
sales lead purchase: buy purchase quote pricing demo plan upgrade offer trial order
cancellation cancel churn: cancel terminate unsubscribe close leave
feature request suggestion idea: feature suggest wish add idea improve request
complaint complain: complain unhappy disappoint terrible worst angry unacceptable
security abuse fraud: breach phishing hack leak stolen fraud vulnerability suspicious password
legal compliance privacy: contract law lawyer gdpr privacy terms legal delete
spam junk: win prize free click lottery casino
question inquiry: how what question wonder know
positive praise happy good: great love thank excellent happy good perfect wonderful helpful nice
negative angry bad unhappy frustrated: bad terrible hate angry broken disappoint worst twice unacceptable wrong never problem
urgent high critical immediate severe: urgent asap immediately outage down emergency blocked critical deadline today stuck
low minor trivial: minor whenever curious small typo cosmetic
reject deny declined: reject deny refuse decline against
approve accept confirm: approve accept confirm agree good
`

// related maps the stem of a label's word to the stems that speak of it.
var related = parseTopics(topics)

func parseTopics(text string) map[string][]string {
	m := map[string][]string{}
	for line := range strings.Lines(text) {
		labels, words, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		for _, label := range strings.Fields(labels) {
			m[stem(label)] = append(m[stem(label)], stems(words)...)
		}
	}
	return m
}

// neutral are the labels for when nothing speaks for any.
var neutral = set("other general unknown none neutral medium normal misc miscellaneous default unspecified standard")
