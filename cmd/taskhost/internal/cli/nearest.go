package cli

// nearest returns the candidate with the fewest edits (Levenshtein) from word, if that is few enough to be a slip: at most a third
// of its length, at least 2, and fewer than the whole word. "" when none is.
func nearest(word string, candidates []string) string {
	best, bestDistance := "", min(max(2, len(word)/3)+1, len(word))
	for _, c := range candidates {
		if d := levenshtein(word, c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

func levenshtein(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
