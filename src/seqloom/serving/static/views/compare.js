import { heading } from "../shared/states.js";
export const compare = { name: "compare", title: "compare", available: () => false, show(place) { place.append(heading("compare", "")); } };
