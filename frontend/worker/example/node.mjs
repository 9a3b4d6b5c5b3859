// node node.mjs BUNDLE-FOLDER < text.txt
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { Tagger } from "./gnnxml/index.js";

const tagger = await Tagger.load(pathToFileURL(`${process.argv[2]}/`));
const { tags } = await tagger.tag(readFileSync(0, "utf8"), { top: 5 });
for (const tag of tags) {
  console.log(tag.name, tag.score.toFixed(3), tag.evidence.words.slice(0, 3).map((word) => word.text).join(", "));
}
