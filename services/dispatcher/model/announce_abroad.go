package model

import (
	"regexp"
	"slices"
	"strings"
)

// Words around documents in German, French, Spanish, Portuguese, Italian, Russian, Chinese, Japanese and Korean.
var (
	// rejectingAbroad matches the label of a document that does not count.
	rejectingAbroad = regexp.MustCompile(`(?:^|[^\pL])(?:beispiel\pL*|z\. ?b\.?|entw[uü]rf\pL*|falsch\pL*|exempl[eo]|brouillon|incorrecte?|faux|` +
		`ejemplo|borrador|incorrecto|rascunho|errado|esempio|bozza|sbagliat\pL*|например|пример\pL*|черновик\pL*|неправильн\pL*|неверн\pL*)(?:$|[^\pL])|` +
		`例如|比如|示例|举例|草稿|草案|错误|不正确|例えば|^例$|下書き|誤り|不正解|예시|예를 들|초안|잘못된`)
	// chosenAbroad matches the label of an answer, although it may name another one.
	chosenAbroad = regexp.MustCompile(`endgültig|korrigiert|verbessert|définiti|corrigé|corregid|corrigid|definitiv|` +
		`исправлен|окончательн|итогов|最终|修正|修订|更正|最終|최종|수정`)
	// doubtAbroad are the beginnings of sentences in which a model takes back what it has written.
	doubtAbroad = []string{ //nolint:gochecknoglobals // a constant
		"moment,", "moment.", "moment:", "nein,", "nein.", "korrektur", "entschuldigung,", "das ist falsch", "das war falsch", "es ist falsch",
		"attendez", "attends", "non,", "désolé", "c'est faux", "en fait", "perdón", "espera", "corrección", "en realidad",
		"desculpe", "correção", "na verdade", "scusa", "aspetta", "in realtà",
		"нет,", "стоп", "подожди", "исправление", "на самом деле", "извините",
		"等等", "等一下", "不对", "更正", "抱歉", "其实", "我错了", "待って", "訂正", "すみません", "間違え", "잠깐", "정정", "죄송",
	}
)

// isDoubtedAbroad is the counterpart of doubt.
func isDoubtedAbroad(text string) bool {
	const ends, longest = "\n.!?:。！？：", 40
	for text != "" {
		text = strings.TrimLeft(text, ends+" \t\r*_>-(")
		head := strings.ToLower(strings.ReplaceAll(text[:min(len(text), longest)], "’", "'"))
		if slices.ContainsFunc(doubtAbroad, func(words string) bool { return strings.HasPrefix(head, words) }) {
			return true
		}
		next := strings.IndexAny(text, ends)
		if next < 0 {
			return false
		}
		text = text[next:]
	}
	return false
}
