/* Commands break between words, never inside --an-option. */
for (const code of document.querySelectorAll(".md-typeset code")) {
  const texts = [], walk = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) texts.push(walk.currentNode);
  for (const text of texts) {
    const parts = text.data.split(/([^\s-]*-[^\s]+)/);
    if (parts.length === 1) continue;
    text.replaceWith(...parts.map((part, place) => {
      if (place % 2 === 0) return part;
      const word = document.createElement("span");
      word.className = "word";
      word.textContent = part;
      return word;
    }));
  }
}
